package fanout

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/tidings-go/tidings/internal/engine/change"
)

func TestNoGoroutineBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options[string]{})
		before := runtime.NumGoroutine()
		var got []string
		collect := func(n change.Change[string]) { got = append(got, n.Key) }
		kept, err := l.Subscribe(collect, one("a", "1"), SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		removed, err := l.Subscribe(collect, nil, SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		removed.Remove()
		select {
		case <-removed.Done():
		default:
			t.Error("a subscription that was removed before the start is not done")
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Errorf("a log that was not started delivered %q", got)
		}
		if n := runtime.NumGoroutine(); n != before {
			t.Errorf("%d goroutines, %d before the subscriptions", n, before)
		}

		l.Start()
		l.Start()
		l.Publish([]change.Change[string]{{Type: change.Added, Key: "b", New: "2"}}, 2)
		l.MarkSynced()
		<-kept.Synced()
		if !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("delivered %q, want a and b", got)
		}
		l.Close()
		<-kept.Done()
	})
}

func TestCloseOfALogThatNeverStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options[string]{})
		s, err := l.Subscribe(func(change.Change[string]) { t.Error("called") }, one("a", "1"), SubscriptionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		<-s.Done()
		if err := l.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if s.HasSynced() {
			t.Error("a subscription that never ran says that it is synced")
		}
	})
}
