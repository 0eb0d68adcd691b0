package controller_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller"
)

// TestProfilesNameControllersAndLeases checks the labels of goroutines while a call runs.
func TestProfilesNameControllersAndLeases(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
		create(w, configMap("a", "x"))
		called := make(chan string)
		c := newController(w, options{Name: "painter"},
			func(ctx context.Context, r request) (controller.Result, error) {
				called <- r.Key
				pprof.Do(ctx, pprof.Labels("step", "one"), func(ctx context.Context) { <-ctx.Done() })
				return controller.Result{}, nil
			})
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard, Election: &controller.Election{Namespace: "ops", Name: "paint"},
		})
		fatal(t, err)
		fatal(t, m.AddController(c))
		stop := run(w, m)
		<-called
		synctest.Wait()
		var profile bytes.Buffer
		fatal(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
		for _, want := range []string{
			`"controller":"painter", "does":"worker", "lease":"ops/paint", "step":"one"`,
			`"controller":"painter", "does":"housekeeper", "lease":"ops/paint"`,
			`"controller":"painter", "does":"asker", "lease":"ops/paint"`,
			`"does":"leader", "lease":"ops/paint"`, `"does":"renewer", "lease":"ops/paint"`,
			`"does":"follower", "lease":"ops/paint"`,
		} {
			if !strings.Contains(profile.String(), want) {
				t.Errorf("no goroutine has the labels %s:\n%s", want, profile.String())
			}
		}
		fatal(t, stop())
	})
}
