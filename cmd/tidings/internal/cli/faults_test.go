package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// newDemonstration returns a demo over memory, and the buffer for its output.
func newDemonstration(t *testing.T, o demoOptions) (*demonstration, *bytes.Buffer) {
	t.Helper()
	printed := new(bytes.Buffer)
	d := &demonstration{o: o, screen: view.NewScreen(printed, printed, view.ScreenOptions{}), server: new(server)}
	if err := d.newServer(&common{}); err != nil {
		t.Fatal(err)
	}
	if err := d.fleet.Populate(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := d.addTypes(&common{}, d.server.Config()); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.cluster, err = d.fleet.Manager(o.churn); err != nil {
		t.Fatal(err)
	}
	return d, printed
}

// demonstrate runs a demo in virtual time, over memory, and returns its output.
func demonstrate(t *testing.T, o demoOptions) (out string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, printed := newDemonstration(t, o)
		defer d.server.Close() //nolint:errcheck // the test is over
		err := d.run(t.Context())
		out = printed.String()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return out
}

func TestFaultsAreNarratedWithTheirCost(t *testing.T) {
	out := demonstrate(t, demoOptions{pods: 100, churn: 40, seed: 7, faults: true, length: faultsLength})
	for _, same := range regexp.MustCompile(`no difference but the version: (\d+) → (\d+)`).FindAllStringSubmatch(out, -1) {
		if same[1] == same[2] {
			t.Errorf("an object that the backup has left as it was is printed: %s", same[0])
		}
	}
	for _, want := range []string{
		"fault: connection cut: all 7 watches break\n",
		`resumed from RV \d+ after \S+: 0 lists, [1-9]\d* objects? changed meanwhile\n`,
		"fault: 410 Gone: a pod is deleted, and the server forgets the history that the watch of pods needs\n",
		`listed again after \S+: 1 list, [1-9]\d* objects? changed meanwhile\n`,
		"fault: permission taken: the watch of services breaks, and the server forbids another\n",
		`watched again after \S+: 0 lists, [1-9]\d* objects? changed meanwhile\n`,
		`fault: restored backup: the server is down, then at RV \d+ instead of \d+\n`,
		`noticed after 11s of outage: 7 lists, [1-9]\d* objects? changed meanwhile\n`,
		"fault: silent connection: the watch of configmaps brings nothing any more\n",
		`closed and resumed after (29|30)(\.\d)?s: 0 lists, [1-9]\d* objects? changed meanwhile\n`,
		`\n  faults     [5-9]\n`, "match the server",
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s is not in:\n%s", want, out)
		}
	}
}

// TestExpiredHistoryCostsOneList forgets the history while config maps change at the same moment.
func TestExpiredHistoryCostsOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, printed := newDemonstration(t, demoOptions{pods: 10, seed: 7, faults: true})
		defer d.server.Close() //nolint:errcheck // the test is over
		ctx, stop := context.WithCancel(t.Context())
		if err := d.sync(ctx, ctx); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- d.writeUntil(ctx, recoveryEvery) }()
		const times = 10
		for range times {
			d.faults.expire(ctx)
		}
		stop()
		if err := errors.Join(<-ended, d.factory.Shutdown(t.Context())); err != nil {
			t.Error(err)
		}
		costs := regexp.MustCompile(`listed again after .*`).FindAllString(printed.String(), -1)
		if len(costs) != times || strings.Count(strings.Join(costs, "\n"), ": 1 list,") != times {
			t.Errorf("%d faults cost %q", times, costs)
		}
	})
}

// writeUntil changes some config maps again and again until ctx ends.
func (d *demonstration) writeUntil(ctx context.Context, every time.Duration) error {
	for i := 0; sleep(ctx, every); i++ {
		if err := d.writes.Acquire(ctx, 1); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
		for n := range 5 {
			config := &corev1.ConfigMap{Data: map[string]string{"i": fmt.Sprint(i)}}
			config.Namespace, config.Name = d.fleet.Namespace(), fmt.Sprint("config-", n)
			write := d.server.Update
			if i == 0 {
				write = d.server.Create
			}
			if _, err := write(ctx, config); err != nil {
				return err
			}
		}
		d.writes.Release(1)
	}
	return nil
}

// TestDemoMayEndDuringAFault ends demos at any moment of a fault.
func TestDemoMayEndDuringAFault(t *testing.T) {
	for _, seconds := range []int{4, 8, 14, 24, 30, 45, 60} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			out := demonstrate(t, demoOptions{
				pods: 30, churn: 20, seed: 7, faults: true, length: time.Duration(seconds) * time.Second,
			})
			if want := fmt.Sprintf("\n  faults     %d\n", strings.Count(out, "fault: ")); !strings.Contains(out, want) {
				t.Errorf("%q is not in:\n%s", want, out)
			}
		})
	}
}
