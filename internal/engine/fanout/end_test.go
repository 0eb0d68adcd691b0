package fanout

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
)

func TestP09_RemoveDoesNotWaitForTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		h := r.join(true, SubscriptionOptions{})
		other := r.join(false, SubscriptionOptions{})
		r.publish("a", modify, modify, modify)
		synctest.Wait()
		h.Remove()
		synctest.Wait()
		select {
		case <-h.Done():
			t.Error("done while the call is running")
		default:
		}
		if st := h.Stats(); st.Pending != 3 || st.Key != "a" {
			t.Errorf("removed in a call: %+v, want 3 pending, key a", st)
		}
		h.release()
		<-h.Done()
		if len(h.seen) != 1 {
			t.Errorf("%d calls, want 1", len(h.seen))
		}
		r.finish(other)
	})
}

func TestP09_WaitNamesTheHandlersThatDoNotReturn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		stuck := r.join(true, SubscriptionOptions{Name: "stuck"})
		early := r.join(true, SubscriptionOptions{Name: "early"})
		idle := r.join(false, SubscriptionOptions{Name: "idle"})
		began := time.Now()
		r.publish("default/web", modify)
		synctest.Wait()
		early.Remove()
		r.publish("default/db", modify, modify)
		r.log.Close()
		r.log.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := r.log.Wait(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v, want one for the deadline", err)
		}
		since := began.Format(time.RFC3339Nano)
		for _, part := range []string{
			`: "early" (key "default/web", since ` + since + `), "stuck" (key "default/web", since ` + since + "): ",
			"deadline exceeded", "have not returned",
		} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not say %q", err, part)
			}
		}
		<-idle.Done()
		stuck.release()
		early.release()
		if err := r.log.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if err := stuckError[*object](nil, context.Canceled); err != nil {
			t.Errorf("nobody is stuck: %v", err)
		}
		if len(stuck.seen) != 1 || len(early.seen) != 1 {
			t.Errorf("calls %d, %d after Close, want the one that ran", len(stuck.seen), len(early.seen))
		}
	})
}

func TestP09_ClosedLogRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.log.Close()
		_, err := r.log.Subscribe(func(change.Change[*object]) {}, nil, SubscriptionOptions{Name: "late"})
		if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), `"late"`) {
			t.Errorf("subscribe: %v, want ErrClosed that names the handler", err)
		}
		r.publish("a", modify)
		r.log.MarkSynced()
		if err := r.log.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestP09_GoexitInAHandlerEndsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var reports []Panic
		r.publish("a", modify)
		r.publish("b", modify)
		var keys []string
		s, err := r.log.Subscribe(func(n change.Change[*object]) {
			keys = append(keys, n.Key)
			if n.Key != "b" && n.Key != "d" {
				runtime.Goexit()
			}
		}, items(r.snapshot()), SubscriptionOptions{Name: "test", OnPanic: func(p Panic) { reports = append(reports, p) }})
		if err != nil {
			t.Fatal(err)
		}
		silent, err := r.log.Subscribe(func(change.Change[*object]) { panic("no") }, nil,
			SubscriptionOptions{IsolatePanics: true}) // without OnPanic
		if err != nil {
			t.Fatal(err)
		}
		r.publish("c", modify)
		r.publish("d", modify)
		synctest.Wait()
		if st := silent.Stats(); st.Panics != 2 || st.Delivered != 2 {
			t.Errorf("the handler that panics: %+v, want 2 panics", st)
		}
		r.log.Close()
		if err := r.log.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(keys, []string{"a", "b", "c", "d"}) || s.Stats().Panics != 2 {
			t.Errorf("called with %q, %d panics, want a b c d, 2", keys, s.Stats().Panics)
		}
		if len(reports) != 2 || reports[1].Value != ErrGoexit || reports[1].Key != "c" {
			t.Errorf("reports %v", reports)
		}
	})
}
