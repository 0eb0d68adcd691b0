package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// TestFollow has one change of each type made while a function follows the changes.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := run(t, optionsOf())
		var seen []inspect.Change
		remove, err := c.Follow("the follower", func(made inspect.Change) { seen = append(seen, made) })
		if err != nil {
			t.Fatal(err)
		}
		if handlers := c.Health().Handlers; len(handlers) != 1 || handlers[0].Name != "the follower" {
			t.Errorf("the handlers are %+v", handlers)
		}
		publish := func(changes ...change.Change[string]) {
			c.log.Publish(changes, 1)
			synctest.Wait()
		}
		publish(
			change.Change[string]{Type: change.Added, Key: "x", New: "A1"},
			change.Change[string]{Type: change.Updated, Resync: true, Key: "x", Old: "A1", New: "A2"},
			change.Change[string]{Type: change.Deleted, Key: "x", Old: "A2", New: "A3"},
		)
		remove()
		publish(change.Change[string]{Type: change.Added, Key: "late", New: "A1"})
		want := []inspect.Change{
			{Type: change.Added, Key: "x", New: "A1"},
			{Type: change.Updated, Resync: true, Key: "x", Old: "A1", New: "A2"},
			{Type: change.Deleted, Key: "x", Old: "A2"},
		}
		if len(seen) != len(want) {
			t.Fatalf("it has seen %+v, want %+v", seen, want)
		}
		for i := range want {
			if seen[i] != want[i] {
				t.Errorf("change %d is %+v, want %+v", i, seen[i], want[i])
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if _, err := c.Follow("late", func(inspect.Change) {}); err != ErrStopped {
			t.Errorf("Follow after the stop: %v", err)
		}
	})
}

// TestP09_StopWaitsForStuckHandlersThatAreReported: with OnStuck, Run returns when the handler does.
func TestP09_StopWaitsForStuckHandlersThatAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		o := optionsOf()
		o.StopGrace = 10 * time.Second
		o.OnStuck = func(err error) {
			if reports++; !errors.Is(err, ErrHandlersStuck) {
				t.Errorf("reported: %v", err)
			}
		}
		c, stop := run(t, o)
		slow := func(change.Change[string]) { time.Sleep(25 * time.Second) }
		if _, err := c.Subscribe(slow, false, fanout.SubscriptionOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		if err := stop(); err != nil || time.Since(began) != 25*time.Second || reports != 2 {
			t.Errorf("Run: %v after %v and %d reports", err, time.Since(began), reports)
		}
	})
}
