package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/test/logtable"
)

// writeOnce returns a function that writes an object at its first call.
func writeOnce(w *world) controller.Func[*corev1.ConfigMap] {
	written := false
	return func(ctx context.Context, r request) (controller.Result, error) {
		if written {
			return controller.Result{}, nil
		}
		written = true
		_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "2"), updateNow)
		return controller.Result{}, err
	}
}

// logHeld has a cache that does not show a write for a minute.
func logHeld(w *world, lines *logtable.Lines) {
	create(w, configMap("a", "x"))
	delayWatches(w, "", time.Minute)
	stop := start(w, newController(w, options{Logger: lines.Logger()}, writeOnce(w)))
	time.Sleep(2 * time.Minute)
	fatal(w.T, stop())
}

// logUnknown has a write without an answer, and a server that does not answer the question about
// it, while the controller runs and at the end of its term.
func logUnknown(w *world, lines *logtable.Lines) {
	create(w, configMap("a", "x"))
	w.server.Inject(apisim.Match{Verb: "update"}, apisim.RefuseApplied(500))
	w.server.Inject(apisim.Match{Verb: "get", Name: "x"}, apisim.Refuse(503, 0))
	term := handingTerm{newTerm()}
	stop := startTerm(w, newController(w, options{Logger: lines.Logger()}, writeOnce(w)), term)
	time.Sleep(30 * time.Second)
	fatal(w.T, stop())
}

// logTakeovers has caches that are behind the server at the beginning of terms. The last holder
// of the first term has left its versions, that of the second has not, and the server of the
// third cannot be asked.
func logTakeovers(w *world, lines *logtable.Lines) {
	stored := create(w, withState(configMap("a", "x"), "1"))
	delayWatches(w, "", time.Minute)
	c := newController(w, options{Logger: lines.Logger()}, isCalled(&calls{}))
	fatal(w.T, w.factory.Start(w.ctx))
	fatal(w.T, w.factory.WaitForSync(w.ctx))
	for _, left := range []bool{true, false} {
		stored = update(w, withState(stored, fmt.Sprint("left ", left)))
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"configmaps": stored.ResourceVersion}, left
		stop := startTerm(w, c, term)
		time.Sleep(15 * time.Second)
		fatal(w.T, stop())
	}
	w.server.Inject(apisim.Match{Verb: "list"}, apisim.Refuse(503, 0))
	stop := startTerm(w, c, handingTerm{newTerm()})
	time.Sleep(15 * time.Second)
	fatal(w.T, stop())
}

// logOptional has an optional secondary whose informer stops before it has synced.
func logOptional(w *world, lines *logtable.Lines) {
	w.server.Inject(apisim.Match{Resource: "secrets"}, apisim.Refuse(403, 0))
	other, err := tidings.NewFactory(w.server.Config(), tidings.FactoryOptions{Logger: discard})
	fatal(w.T, err)
	secrets, err := tidings.For[*corev1.Secret](other, tidings.Selection{})
	fatal(w.T, err)
	fatal(w.T, other.Start(w.ctx))
	c := newController(w, options{Logger: lines.Logger(),
		Secondaries: []secondary{controller.Owns(secrets).Optional()}}, isCalled(&calls{}))
	stop := start(w, c)
	time.Sleep(5 * time.Second)
	fatal(w.T, other.Shutdown(w.ctx))
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if err := stop(); err != nil && !errors.Is(err, tidings.ErrStopped) {
		w.Error(err)
	}
}
