package contract_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
)

// TestReady asks the probe before the start, while the list is refused, after it, and after the
// stop.
func TestReady(t *testing.T) {
	property(t, func(w *world) {
		var check func(*http.Request) error = w.factory.Ready // a healthz.Checker
		expectProbe := func(when string, code int, says string) {
			w.Helper()
			answer := httptest.NewRecorder()
			w.factory.ReadyHandler().ServeHTTP(answer, httptest.NewRequest("GET", "/readyz", nil))
			if answer.Code != code || !strings.Contains(answer.Body.String(), says) {
				w.Errorf("%s the probe answers %d: %s; want %d and %q", when, answer.Code,
					answer.Body, code, says)
			}
			if err := check(nil); (err == nil) != (code == http.StatusOK) {
				w.Errorf("%s Ready returns %v", when, err)
			}
		}
		expectProbe("before the start", 503, "call Start")
		w.gate.set(refuse(http.StatusForbidden, "Forbidden"))
		w.must(w.factory.Start(w.ctx))
		time.Sleep(time.Minute)
		expectProbe("while the list is forbidden", 503, w.probe.informer().Name()+" is Forbidden")
		w.gate.set(nil)
		w.settle()
		expectProbe("after the list", 200, "ok\n")
		w.gate.set(refuse(http.StatusForbidden, "Forbidden"))
		w.settle()
		expectProbe("with a cache that is behind", 200, "ok\n")
		w.stop()
		time.Sleep(time.Minute)
		expectProbe("after the stop", 503, tidings.ErrStopped.Error())
		expectError(w.T, "Ready", w.factory.Ready(nil), tidings.ErrStopped)
		w.probe.informer().Release()
		expectProbe("after the release", 200, "ok\n")
	})
}
