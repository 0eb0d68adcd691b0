package tidingstest

import (
	"os"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/apisim"
)

// TestMain leaves out apimachinery's way to report errors: it remembers the time of the
// last one, so that each bubble, whose time begins anew, would sleep for what the one
// before took. The tests have failures reported, and logged, on purpose.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	klog.SetLogger(logr.Discard())
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

func TestApisim(t *testing.T) {
	for name, test := range Tests() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, simulated(t)) })
		})
	}
}

func TestFakeClientset(t *testing.T) {
	for name, test := range Tests(FakeKinds()...) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, Server{Client: fake.NewClientset(), Settle: synctest.Wait})
			})
		})
	}
}

// TestInRealTime shows that the suite needs no bubble: it waits for what happens.
func TestInRealTime(t *testing.T) {
	server := apisim.Start(t)
	Run(t, Server{Config: server.Config()}, Kinds()[0], dropInKinds()[0])
}
