package election

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
)

// original is client-go's elector, with the options of the core components.
type original struct {
	stop context.CancelFunc
	led  chan time.Time // receives the time at which it began to lead
	done chan struct{}
}

func (w *world) original(name string, release bool) *original {
	w.Helper()
	client, err := kubernetes.NewForConfig(leasetest.Config(w.server, name))
	if err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(w.Context())
	o := &original{
		stop: stop, led: make(chan time.Time, 1), done: make(chan struct{}),
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "ops", Name: "rollout"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: duration, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: release, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				o.led <- time.Now()
				<-ctx.Done()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	go func() {
		defer close(o.done)
		elector.Run(ctx)
	}()
	w.Cleanup(func() {
		stop()
		<-o.done
	})
	return o
}

// leads waits until it leads, and returns the time at which it began to lead.
func (w *world) leads(o *original) time.Time {
	w.Helper()
	select {
	case at := <-o.led:
		return at
	case <-time.After(time.Minute):
		w.Fatal("client-go's elector does not lead after a minute")
		return time.Time{}
	}
}

func TestC11_UpgradeFromClientGosElector(t *testing.T) {
	for name, release := range map[string]bool{"released": true, "crashed": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *world) {
				old := t.original("old", release)
				t.leads(old)
				a := t.start(options("a"), 0)
				time.Sleep(time.Minute)
				if h := a.Health(); h.State != Standby || h.Holder != "old" {
					t.Fatalf("beside client-go's elector, a is %+v", h)
				}
				transitions := *t.lease().Spec.LeaseTransitions
				stopped := time.Now()
				old.stop()
				term, span := t.term(a, 0)
				least, most := time.Duration(0), 250*time.Millisecond
				if !release {
					least, most = duration-2*time.Second, duration+most
				}
				t.wantBetween("the take-over", span.begin.Sub(stopped), least, most)
				if n := *t.lease().Spec.LeaseTransitions; n != transitions+1 {
					t.Errorf("%d transitions after %d", n, transitions)
				}
				if _, ok := term.HandOver(); ok {
					t.Error("client-go's elector left a hand-over")
				}
			})
		})
	}
}

func TestC11_DowngradeToClientGosElector(t *testing.T) {
	for name, crash := range map[string]bool{"released": false, "crashed": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *world) {
				a := t.start(options("a"), 0)
				term, _ := t.term(a, 0)
				old := t.original("old", true)
				time.Sleep(time.Minute)
				synctest.Wait()
				if term.Err() != nil || len(old.led) > 0 {
					t.Fatalf("beside client-go's elector: %v", term.Err())
				}
				stopped := time.Now()
				// client-go's elector reads every 2 s, or with jitter up to every 4.4 s. One read
				// shows it the last renewal, and a later one that the record is over.
				const between = 4400 * time.Millisecond
				most := between
				if crash {
					t.server.Inject(by("a", ""), apisim.Drop())
					most += duration + between
				} else {
					a.stop()
				}
				took := t.leads(old).Sub(stopped)
				t.wantBetween("the take-over", took, 0, most)
				if term.Err() == nil {
					t.Error("a's term is open while client-go's elector leads")
				}
			})
		})
	}
}

// TestC11_NoHandOverThroughClientGosElector: client-go's elector keeps the annotation of an
// earlier holder on the Lease.
func TestC11_NoHandOverThroughClientGosElector(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		term, _ := t.term(a, 0)
		if err := term.SetHandOver(map[string]string{"pods": "7"}); err != nil {
			t.Fatal(err)
		}
		a.stop()
		<-a.done
		old := t.original("old", true)
		t.leads(old)
		b := t.start(options("b"), 0)
		time.Sleep(10 * time.Second)
		if t.lease().Annotations[handOverAnnotation] == "" {
			t.Fatal("client-go's elector removes annotations: this test shows nothing")
		}
		old.stop()
		if next, _ := t.term(b, 0); next.received != nil {
			t.Errorf("b received %v from a, not from the last holder", next.received)
		}
	})
}
