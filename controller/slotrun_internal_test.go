package controller

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// TestS2_ADrainLeavesNoKeyBehind drains a slot before the caches show the writes of its calls, and drops
// it: the barrier no longer checks a key, not even that of an ended object, which is in no queue.
func TestS2_ADrainLeavesNoKeyBehind(t *testing.T) {
	for name, ends := range map[string]bool{"a change": false, "the end of the object": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { drainLeavesNoKey(t, ends) })
		})
	}
}

// drainLeavesNoKey has a call that deletes a Secret: the first call of an object, or that of its end.
func drainLeavesNoKey(t *testing.T, ends bool) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	server, silent := apisim.Start(t), slog.New(slog.DiscardHandler)
	for _, object := range []runtime.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "child"}},
	} {
		_, err := apisim.Create(t.Context(), server, object)
		must(err)
	}
	server.Inject(apisim.Match{Verb: "watch", Resource: "secrets"},
		apisim.Stall(apisim.EachFrame, 300*time.Millisecond))
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{
		Logger: silent, Transport: tidings.Transport{NoStreamedLists: true},
	})
	must(err)
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	must(err)
	secrets, err := tidings.For[*corev1.Secret](factory, tidings.Selection{})
	must(err)
	g, err := NewGuard(server.Config(), GuardOptions{})
	must(err)
	client, err := kubernetes.NewForConfig(g.Config())
	must(err)
	s := NewSlots(ByNamespace)
	c, err := New(informer, Options[*corev1.ConfigMap]{Name: "test", Guard: g, Slots: s, Logger: silent,
		Secondaries: []Secondary{Reads(secrets)}},
		func(ctx context.Context, r Request[*corev1.ConfigMap]) (Result, error) {
			if r.Gone != ends {
				return Result{}, nil
			}
			return Result{}, client.CoreV1().Secrets("a").Delete(ctx, "child", metav1.DeleteOptions{})
		})
	must(err)
	ctx, stop := context.WithCancel(t.Context())
	must(factory.Start(ctx))
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	membership, lose := context.WithCancelCause(context.Background())
	s.Begin(openTerm{membership})
	must(s.Warm(ctx, slot.All()))
	of := slot.Of(slot.Namespace.Of("", "a"))
	for n := range of.Slots() {
		s.Serve([]slot.Owned{{Number: n, Epoch: 1, Versions: map[string]string{}}})
	}
	synctest.Wait()
	if ends {
		_, err = server.Delete(ctx, corev1.SchemeGroupVersion.WithResource("configmaps"), "a", "x")
		must(err)
		synctest.Wait()
	}
	s.Shut(of)
	for n := range of.Slots() {
		for c := s.Calls(n); c.Running > 0 || !c.Known; c = s.Calls(n) {
			time.Sleep(20 * time.Millisecond)
		}
	}
	s.Drop(of)
	time.Sleep(3 * time.Minute)
	synctest.Wait()
	if left := c.barrier.Keys(); len(left) > 0 {
		t.Errorf("%s are left, with %d writes that are not settled", left, c.barrier.Open())
	}
	stop()
	must(<-ended)
	lose(nil)
	must(factory.Shutdown(context.Background()))
	synctest.Wait()
}

// openTerm is a term that ends with a context.
type openTerm struct{ context.Context }

func (openTerm) Remaining() time.Duration { return time.Hour }

// slowMember takes a second to be told of a membership.
type slowMember struct{ *runnerMember }

func (slowMember) setDefaultTerm(Term) { time.Sleep(time.Second) }

// TestS3_NoRunBeginsWithTheSlotsOfBefore: until Begin returns, a run of the new membership may have
// begun. It calls nothing for slots that the last membership has served.
func TestS3_NoRunBeginsWithTheSlotsOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		server, silent := apisim.Start(t), slog.New(slog.DiscardHandler)
		_, err := apisim.Create(t.Context(), server,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
		must(err)
		factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{Logger: silent})
		must(err)
		informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		must(err)
		g, err := NewGuard(server.Config(), GuardOptions{})
		must(err)
		s, calls := NewSlots(ByNamespace), 0
		s.members = []member{slowMember{&runnerMember{share: newShare(s, slot.Count)}}}
		c, err := New(informer, Options[*corev1.ConfigMap]{Name: "test", Guard: g, Slots: s, Logger: silent},
			func(context.Context, Request[*corev1.ConfigMap]) (Result, error) {
				calls++
				return Result{}, nil
			})
		must(err)
		ctx, stop := context.WithCancel(t.Context())
		must(factory.Start(ctx))
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		first, lose := context.WithCancelCause(context.Background())
		s.Begin(openTerm{first})
		must(s.Warm(ctx, slot.All()))
		of := slot.Namespace.Of("", "default")
		s.Serve([]slot.Owned{{Number: of, Epoch: 1, Versions: map[string]string{}}})
		synctest.Wait()
		if calls != 1 {
			t.Fatalf("%d calls of an owned slot", calls)
		}
		lose(nil)
		second, end := context.WithCancelCause(context.Background())
		defer end(nil)
		s.Begin(openTerm{second})
		must(s.Warm(ctx, slot.All()))
		synctest.Wait()
		if calls != 1 {
			t.Errorf("%d calls in a membership that owns nothing", calls-1)
		}
		stop()
		must(<-ended)
		must(factory.Shutdown(context.Background()))
	})
}
