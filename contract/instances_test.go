package contract_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// waitFor waits for a version and returns how long that took.
func (w *world) waitFor(version string) time.Duration {
	w.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Minute)
	defer cancel()
	if err := w.probe.informer().WaitFor(ctx, version); err != nil {
		w.Fatal(err)
	}
	return time.Since(began)
}

// withInstances runs a test for every kind of informer, which reach some API servers by a load
// balancer.
func withInstances(
	t *testing.T, n int, o tidings.FactoryOptions, test func(w *world, all []*apisim.Instance),
) {
	t.Helper()
	propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
		var all []*apisim.Instance
		for range n {
			all = append(all, w.server.AddInstance())
		}
		w.reconnect(o, func(c *rest.Config) { *c = *w.server.Balance(all...) })
		test(w, all)
	})
}

// only makes one of the instances the only one that accepts connections.
func only(all []*apisim.Instance, which int) {
	for n, i := range all {
		i.SetAvailable(n == which)
	}
}

// backUp starts the informer, and backs the server up three minutes later.
func (w *world) backUp() *apisim.Snapshot {
	w.Helper()
	w.haveNamespaces("elsewhere")
	w.create("a", "1")
	w.follow().Rewind(true)
	w.start()
	w.after(3 * time.Minute)
	return w.server.Snapshot()
}

// loseFour starts the informer, and sets the server back by the creation of four objects.
func (w *world) loseFour() {
	w.Helper()
	backup := w.backUp()
	for i := range 4 {
		w.create(fmt.Sprintf("lost%d", i), "1")
	}
	w.after(time.Second)
	w.server.Rewind(backup)
}
