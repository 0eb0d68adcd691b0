package cli_test

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/shard"
)

// shardsArgs returns the arguments of a reading of a group of a server.
func shardsArgs(t *testing.T, url string, args ...string) []string {
	t.Helper()
	return append([]string{"shards", "--kubeconfig", kubeconfig(t, url), "--cache-dir", t.TempDir()}, args...)
}

// groupLease returns a Lease of the group rollout, which its holder holds for an hour.
func groupLease(name, holder string, annotations map[string]string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, Labels: map[string]string{"tidings-go.github.io/shard-group": "rollout"},
		Annotations: map[string]string{},
	}}
	for key, value := range annotations {
		l.Annotations["tidings-go.github.io/"+key] = value
	}
	if name != "rollout" {
		l.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(3600)),
			RenewTime: new(metav1.NewMicroTime(time.Now())),
		}
	}
	return l
}

// mapOf returns the text of a map in which a member owns all slots.
func mapOf(t *testing.T, member string) string {
	t.Helper()
	columns := map[string][]int{}
	for i := range shard.Count {
		columns["owners"] = append(columns["owners"], 1+min(i, 1)) // the first mention, and the first of the members
		for _, column := range []string{"next", "left"} {
			columns[column] = append(columns[column], 0)
		}
		for _, column := range []string{"epochs", "weights"} {
			columns[column] = append(columns[column], 1)
		}
	}
	var text strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	packer := gzip.NewWriter(encoder)
	err := errors.Join(json.NewEncoder(packer).Encode(columns), json.NewEncoder(packer).Encode([]string{member}),
		packer.Close(), encoder.Close())
	if err != nil {
		t.Fatal(err)
	}
	return "1 " + text.String()
}

// createGroup creates the Leases of a group whose one member, if it holds its Lease, calls for all slots.
func (c *cluster) createGroup(holder string) {
	c.t.Helper()
	table, err := apisim.Create(c.t.Context(), c.Server, groupLease("rollout", "", map[string]string{
		"entries": mapOf(c.t, "rollout.web"),
	}))
	if err != nil {
		c.t.Fatal(err)
	}
	weights := map[int]int{}
	for i := range shard.Count {
		weights[i] = 1
	}
	weights[7] = 33
	record, err := json.Marshal(map[string]any{
		"name": "rollout.web", "generation": "v1", "map": table.UID, "state": "takes", "weights": weights,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.create(groupLease("rollout.web", holder, map[string]string{"member": string(record)}))
}

func TestShards(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.createGroup("rollout.web")
	text := run(t, 0, shardsArgs(t, c.url, "shop/rollout")...).out.String()
	for _, part := range []string{
		"GROUP shop/rollout: 100 % covered, 1 member, 0 moving\n", "rollout.web  v1          takes, plans  ",
		"  256    288\n", "rollout.web  0-255\n", "No problems: each slot and controller has an owner that calls for it.\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	var r shard.Report
	text = run(t, 0, shardsArgs(t, c.url, "rollout", "-o", "json")...).out.String()
	if err := json.Unmarshal([]byte(text), &r); err != nil || len(r.Slots) != shard.Count || r.Problems == nil ||
		r.Members[0].Weight != 288 || r.Slots[7].Weight != 33 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestShardsOfAGroupThatWasLeft(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.createGroup("")
	for output, part := range map[string]string{
		"table": "\nPROBLEMS\nNo member lives.\n256 slots (0-255) have nobody for ",
		"json":  `"No member lives.",`,
	} {
		s := start(t, shardsArgs(t, c.url, "shop/rollout", "-o", output)...)
		s.expect(t, 1, "tidings: the group shop/rollout has 2 problems\n")
		if !strings.Contains(s.out.String(), part) {
			t.Errorf("%q is not in\n%s", part, s.out)
		}
	}
}

func TestShardsErrors(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	fails(t, shardsArgs(t, c.url, "rollout"), "there is no such group: the namespace shop has no Lease with the label "+
		"tidings-go.github.io/shard-group=rollout: check the name and the namespace, and whether its program runs")
	fails(t, shardsArgs(t, "http://127.0.0.1:9", "shop/rollout"), "does not answer: connection refused")
	fails(t, shardsArgs(t, c.url, "shop/rollout", "--context", "gone"), `no context "gone": it has staging`)
	late := c.Inject(apisim.Match{Resource: "leases.coordination.k8s.io"}, apisim.Delay(time.Minute))
	fails(t, shardsArgs(t, c.url, "shop/rollout", "--request-timeout", "50ms"), "does not answer")
	late.Lift()
	c.Inject(apisim.Match{Resource: "leases.coordination.k8s.io"}, apisim.Refuse(403, 0))
	fails(t, shardsArgs(t, c.url, "shop/rollout"), "forbids it to these credentials", "kubectl auth can-i --list")
}
