package tidingstest

import (
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/apisim"
)

// TestMain replaces the error handlers of apimachinery. They keep the time of the last
// error, and the time of each bubble begins anew, so that they would sleep for the time
// that the bubble before took. The tests cause errors on purpose.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	klog.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// simulated is an apisim with all its faults.
func simulated(t *testing.T) Server {
	server := apisim.Start(t)
	done := func(f func()) func() error {
		return func() error {
			f()
			return nil
		}
	}
	return Server{
		Config: server.Config(), Settle: synctest.Wait,
		CutConnections: done(server.CutConnections),
		Restart:        done(func() { server.Restart(apisim.RestartOptions{}) }),
		Compact:        done(server.Compact),
		Backup: func() (func() error, error) {
			snapshot := server.Snapshot()
			return done(func() { server.Rewind(snapshot) }), nil
		},
	}
}

// onApisim runs the suite over the kinds whose names begin with one of some prefixes.
func onApisim(t *testing.T, prefixes ...string) {
	for name, test := range Tests() {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, simulated(t)) })
		})
	}
}

// The kinds are tests of their own, because a mutant is given to tests that are short.
func TestTyped(t *testing.T)          { onApisim(t, "typed") }
func TestDynamic(t *testing.T)        { onApisim(t, "dynamic") }
func TestMetadata(t *testing.T)       { onApisim(t, "metadata") }
func TestDropInTyped(t *testing.T)    { onApisim(t, "drop-in typed", "drop-in list") }
func TestDropInDynamic(t *testing.T)  { onApisim(t, "drop-in dynamic") }
func TestDropInMetadata(t *testing.T) { onApisim(t, "drop-in metadata") }

func TestFakeClientset(t *testing.T) {
	for name, test := range Tests(FakeKinds()...) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, Server{Client: fake.NewClientset(), Settle: synctest.Wait})
			})
		})
	}
}

// TestInRealTime shows that the suite needs no bubble: it waits for events.
func TestInRealTime(t *testing.T) {
	server := apisim.Start(t)
	Run(t, Server{Config: server.Config()}, Kinds()[0], dropInKinds()[0])
}
