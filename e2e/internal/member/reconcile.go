package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/e2e/internal/journal"
)

// slow is the duration of a call for a ConfigMap "slow".
const slow = 600 * time.Millisecond

// newClient returns a client of ConfigMaps.
func newClient(config *rest.Config) (*rest.RESTClient, error) {
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// writeKey is the key of the number of a write in the context of its request.
type writeKey struct{}

func (r *replica) reconcile(
	ctx context.Context, q controller.Request[*corev1.ConfigMap],
) (controller.Result, error) {
	number := r.calls.Add(1)
	kind, known := journal.Call, q.Object
	if q.Gone {
		kind, known = journal.Gone, q.Last
	}
	version, err := strconv.ParseUint(known.ResourceVersion, 10, 64)
	if err != nil {
		return controller.Result{}, err
	}
	r.note(kind, journal.Entry{Number: number, Key: q.Key, Version: version})
	member := *r.member.Load()
	defer func() { r.note(journal.Return, journal.Entry{Member: member, Number: number}) }()
	if q.Gone || q.Object.Annotations["seen"] == q.Object.Data["asked"] {
		return controller.Result{}, nil
	}
	if q.Name() == "slow" {
		time.Sleep(slow)
	}
	return controller.Result{}, r.write(context.WithoutCancel(ctx), q.Object, member, number)
}

func (r *replica) write(
	ctx context.Context, m *corev1.ConfigMap, member string, call uint64,
) error {
	number := r.writes.Add(1)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		"seen": m.Data["asked"], "by": r.name, "write": fmt.Sprint(number),
	}}})
	if err != nil {
		return err
	}
	ctx = context.WithValue(ctx, writeKey{}, number)
	r.note(journal.Write, journal.Entry{Member: member, Number: number, Call: call})
	answer := journal.Entry{Member: member, Number: number}
	written := new(corev1.ConfigMap)
	err = r.client.Patch(types.MergePatchType).Namespace(m.Namespace).Resource("configmaps").
		Name(m.Name).Body(patch).Do(ctx).Into(written)
	if err == nil {
		answer.Version, err = strconv.ParseUint(written.ResourceVersion, 10, 64)
	}
	if err != nil {
		answer.Text = err.Error()
	}
	r.note(journal.Answer, answer)
	return err
}
