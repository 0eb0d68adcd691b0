package contract_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestHowLate checks the bounds in docs/testing.md: how long after a fault a cache is in step again.
func TestHowLate(t *testing.T) {
	watch := apisim.Match{Verb: "watch", Resource: "configmaps"}
	stall := func(frame int) func(*apisim.Server, *apisim.Snapshot) {
		return func(server *apisim.Server, _ *apisim.Snapshot) {
			server.Inject(watch.Nth(1), apisim.Stall(frame, 0))
			server.CutConnections()
			time.Sleep(5 * time.Minute)
		}
	}
	for name, row := range map[string]struct {
		fault       func(*apisim.Server, *apisim.Snapshot)
		objects     int // that the server has afterwards; 0 after a rewind
		least, most time.Duration
	}{
		"a broken connection": {
			func(server *apisim.Server, _ *apisim.Snapshot) { server.CutConnections() }, 2, 0, 5 * time.Second,
		},
		"an expired version": {func(server *apisim.Server, _ *apisim.Snapshot) {
			server.Inject(watch.Nth(1), apisim.Fail(0, http.StatusGone))
			server.CutConnections()
		}, 2, 0, 10 * time.Second},
		"silence after two bookmarks": {stall(4), 2, time.Second, 4*time.Minute + 30*time.Second},
		"silence before that":         {stall(0), 2, time.Second, 11 * time.Minute},
		"a rewind": {
			func(server *apisim.Server, to *apisim.Snapshot) { server.Rewind(to) }, 0, 0, 11 * time.Minute,
		},
		"a rewind with an outage": {func(server *apisim.Server, to *apisim.Snapshot) {
			server.Rewind(to)
			server.Restart(apisim.RestartOptions{Down: 11 * time.Second})
		}, 0, 11 * time.Second, 45 * time.Second},
		"a permission": {func(server *apisim.Server, _ *apisim.Snapshot) {
			if err := server.SetUsers(apisim.User{Name: "other", Token: "other"}); err != nil {
				panic(err)
			}
			server.CutConnections()
			time.Sleep(10 * time.Minute)
			if err := server.SetUsers(); err != nil {
				panic(err)
			}
		}, 2, time.Second, 45 * time.Second},
		"an outage": {func(server *apisim.Server, _ *apisim.Snapshot) {
			server.SetAvailable(false)
			time.Sleep(10 * time.Minute)
			server.SetAvailable(true)
		}, 2, time.Second, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apisim.Start(t)
				factory, err := tidings.NewFactory(server.Config(),
					tidings.FactoryOptions{Logger: slog.New(slog.DiscardHandler)})
				ok(t, err)
				informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
				ok(t, err)
				ctx, stop := context.WithCancel(t.Context())
				defer func() { ok(t, factory.Shutdown(context.Background())) }()
				defer stop()
				ok(t, factory.Start(ctx))
				ok(t, factory.WaitForSync(ctx))
				empty := server.Snapshot()
				create := func(name string) {
					_, err := server.Create(ctx, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
					})
					ok(t, err)
				}
				create("a")
				time.Sleep(3 * time.Minute)
				row.fault(server, empty)
				if row.objects == 2 {
					create("b")
				}
				began := time.Now()
				for informer.Lister().Len() != row.objects && time.Since(began) < time.Hour {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				if late := time.Since(began); late < row.least || late > row.most {
					t.Errorf("in step after %v, want %v to %v: %+v", late, row.least, row.most, informer.Health())
				}
			})
		})
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
