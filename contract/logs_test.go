package contract_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/logtable"
)

// TestLogs makes an informer log each line of docs/logs.md, and no other, under an hour of faults.
func TestLogs(t *testing.T) {
	lines := logtable.New("informer")
	synctest.Test(t, func(t *testing.T) {
		o := tidings.FactoryOptions{Logger: lines.Logger(), Scheme: gaugeScheme()}
		w := newWorld(t, nil, o, apisim.Options{})
		w.install()
		(&gauged{T: t, server: w.server}).set("default/b", noSize)
		w.server.Inject(apisim.Match{}, apisim.Call(func(r *http.Request) {
			query := r.URL.Query()
			query.Del("labelSelector")
			r.URL.RawQuery = query.Encode()
		}))
		w.server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Stall(1, 0))
		release := make(chan struct{})
		logEverything(w, release)
		backup := w.server.Snapshot()
		time.Sleep(10 * time.Minute)
		failToListSlots(w)
		loseAnEnd(w)
		for n := range 100 {
			w.create(fmt.Sprint("many-", n), "1")
		}
		w.server.SetAvailable(false)
		time.Sleep(10 * time.Minute)
		w.server.SetAvailable(true)
		time.Sleep(10 * time.Minute)
		w.server.Rewind(backup)
		time.Sleep(30 * time.Minute)
		w.stuck = true
		w.end()
		close(release)
		synctest.Wait()
	})
	if err := lines.Compare("../docs/logs.md", "Informers"); err != nil {
		t.Error(err)
	}
	for kind, n := range lines.Kinds() {
		if n > 25 && !strings.HasPrefix(kind, "Debug") {
			t.Errorf("%d lines in an hour: %s", n, kind)
		}
	}
}

// failToListSlots refuses the list of slots that come.
func failToListSlots(w *world) {
	slots := tidings.NewSlots(tidings.ByUID, tidings.SlotSet{})
	_, err := tidings.For[*corev1.Secret](w.factory, tidings.Selection{Slots: slots})
	w.must(err)
	w.must(w.factory.Start(w.ctx))
	time.Sleep(time.Minute)
	refused := refuse(http.StatusForbidden, "Forbidden")
	w.gate.set(func(rw http.ResponseWriter, r *http.Request) bool {
		return r.URL.Query().Get("watch") == "" && refused(rw, r)
	})
	if err := slots.Add(w.ctx, tidings.AllSlots()); err == nil {
		w.Error("the list of the slots was refused")
	}
	w.gate.set(nil)
}

// loseAnEnd deletes an object while the watch lags, so that no event brings its end.
func loseAnEnd(w *world) {
	w.haveNamespaces("lost")
	_, err := tidings.For[*corev1.Secret](w.factory, tidings.Selection{Namespace: "lost"})
	w.must(err)
	w.must(w.factory.Start(w.ctx))
	_, err = w.server.Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lost", Name: "a"}})
	w.must(err)
	time.Sleep(time.Minute)
	watches := apisim.Match{Verb: "watch", Resource: "secrets", Namespace: "lost"}
	lag, silence := w.server.Inject(watches, apisim.Lag()), w.server.Inject(watches, apisim.DropBookmarks())
	w.server.CutConnections()
	_, err = w.server.Delete(w.ctx, corev1.SchemeGroupVersion.WithResource("secrets"), "lost", "a")
	w.must(err)
	time.Sleep(20 * time.Minute)
	lag.Lift()
	silence.Lift()
}

// logEverything starts an informer whose functions fail, and one of whose handlers does not return.
func logEverything(w *world, release chan struct{}) {
	w.create("a", "1")
	w.create("other", "2")
	fails := func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		if strings.HasPrefix(c.Name, "many") {
			return nil, errors.New("no transform")
		}
		return c, nil
	}
	configs, err := tidings.For[*corev1.ConfigMap](w.factory,
		tidings.Selection{Labels: "n=1", Transform: tidings.NewTransform(fails)})
	w.must(err)
	w.must(configs.AddIndex(tidings.NewIndex("broken", func(*corev1.ConfigMap) []string { panic("no index") })))
	for _, handle := range []func(*corev1.ConfigMap, bool){
		func(*corev1.ConfigMap, bool) { panic("no handler") },
		func(*corev1.ConfigMap, bool) { <-release },
	} {
		_, err = configs.AddHandler(tidings.Funcs[*corev1.ConfigMap]{OnAdd: handle},
			tidings.HandlerOptions{IsolatePanics: true})
		w.must(err)
	}
	_, err = tidings.For[*gauge](w.factory, tidings.Selection{})
	w.must(err)
	w.must(w.factory.Start(w.ctx))
}
