package contract_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// FuzzAnswers makes all answers to an informer from bytes, from the connection to the last byte of
// a body: statuses, headers, lists and frames, true ones that are spoilt and any others, cuts,
// pauses and silence. Then the server is honest again. Within an hour the informer must hold the
// objects of the server, its handler must have received them, and nothing may be left behind. See
// [answers] for the meaning of the bytes.
func FuzzAnswers(f *testing.F) {
	for _, seed := range answerSeeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		script := &bytesOf{data}
		setting := script.next()
		kind := []string{"typed", "dynamic", "metadata"}[setting%3]
		o := tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: setting&8 != 0}}
		if setting&16 != 0 {
			o.Transport.PageSize = 2
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, kinds[kind], o, apisim.Options{})
			defer w.end()
			wire := &answers{script: script, write: w.changeAtOnce}
			w.reconnect(o, func(c *rest.Config) {
				c.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
					wire.honest = next
					return wire
				}
			})
			survive(w, wire)
		})
	})
}

// survive starts the informer of a world on a wire, and requires that it recovers.
func survive(w *world, wire *answers) {
	l := w.follow()
	for _, name := range []string{"a", "b", "c"} {
		w.create(name, "1")
	}
	w.startFactory()
	for minute := range 30 {
		if minute%10 == 5 {
			w.update("a", fmt.Sprint(minute))
			w.remove("b")
			w.create("b", fmt.Sprint(minute))
		}
		w.after(time.Minute)
	}
	wire.end()
	// Objects that were invented meanwhile may look like those of the server: every object becomes
	// another one. Then only a list has the true state, and the server answers so, unless it is at
	// the very version that the informer has received.
	for _, name := range []string{"a", "b", "c"} {
		w.remove(name)
		w.create(name, "honest")
	}
	for w.health().Version == w.versions["c"] {
		w.update("c", w.versions["c"])
	}
	w.server.Compact()
	w.server.CutConnections()
	began := time.Now()
	for !maps.Equal(w.probe.state(), w.serverState()) && time.Since(began) < time.Hour {
		w.after(time.Minute)
	}
	w.after(time.Minute)
	l.agrees()
	if h := w.health(); !h.Synced {
		w.Errorf("an hour later the informer is not synced, after %v", h.LastError)
	}
	w.update("a", "last")
	synctest.Wait()
	w.agree()
}

// changeAtOnce changes an object, from a goroutine that must not end the test.
func (w *world) changeAtOnce(n int) {
	if _, err := w.server.Update(context.Background(), object("c", fmt.Sprint("now-", n))); err != nil {
		w.Error(err)
	}
}
