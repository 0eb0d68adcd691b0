package controller_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/controller"
)

// TestC08_AChangeOfASecondaryVisitsNoPrimaries: the function of References is called for
// primaries that change, not for changes of the objects that they mention.
func TestC08_AChangeOfASecondaryVisitsNoPrimaries(t *testing.T) {
	inWorld(t, func(w *world) {
		const primaries = 200
		for i := range primaries {
			d := deployment("a", fmt.Sprintf("d%d", i))
			d.Annotations = map[string]string{"mentions": fmt.Sprintf("a/c%d", i/2)}
			create(w, d)
		}
		settings := create(w, configMap("a", "c7"))
		var visited atomic.Int64
		mentioned := func(d *appsv1.Deployment) []string {
			visited.Add(1)
			return []string{d.Annotations["mentions"]}
		}
		var log calls
		c := control(w, informer[*appsv1.Deployment](w), controller.Options[*appsv1.Deployment]{
			Secondaries: []controller.Secondary{
				controller.References(informer[*corev1.ConfigMap](w), mentioned),
			},
		}, func(
			_ context.Context, r controller.Request[*appsv1.Deployment],
		) (controller.Result, error) {
			log.add("%s", r.Key)
			return controller.Result{}, nil
		})
		stop := start(w, c)
		synctest.Wait()
		if n := len(log.take()); n != primaries {
			t.Fatalf("%d calls for the first list, want %d", n, primaries)
		}
		visited.Store(0)
		settings.Data = map[string]string{"value": "two"}
		update(w, settings)
		log.expect(t, "a/d14", "a/d15")
		if n := visited.Load(); n > 0 {
			t.Errorf("a change of a secondary has visited %d primaries", n)
		}
		fatal(t, stop())
	})
}
