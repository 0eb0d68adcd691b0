package delta_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// Producers of four partitions, one consumer and readers of everything run against each other,
// with little room; nothing is lost.
func TestConcurrentProducersAndReaders(t *testing.T) {
	prefixes := []string{"n0/", "n1/", "n2/", "n3/"}
	const rounds, keys = 300, 7
	r := newRig(t, delta.Options[*object]{Partitions: prefixes, Limit: 20})
	var producers sync.WaitGroup
	final := make([]map[string]*object, len(prefixes))
	for i, prefix := range prefixes {
		final[i] = make(map[string]*object)
		producers.Go(func() {
			if err := produce(t.Context(), r, prefix, rounds, keys, final[i]); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			if r.Len() < 0 {
				t.Error("Len below zero")
			}
			r.Stale()
			if err := r.Resync("token"); err != nil {
				t.Error(err)
			}
		}
	})
	popped := make(chan error)
	go func() {
		for {
			if err := r.Pop(ctx, r.apply); err != nil {
				popped <- err
				return
			}
		}
	}()
	producers.Wait()
	stop()
	others.Wait()
	if err := <-popped; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for r.Pop(endsWhenIdle(t), r.apply) == nil {
	}
	for i, prefix := range prefixes {
		for key, want := range final[i] {
			if got := r.cache.states[key]; got != want {
				t.Errorf("%s is %v, want %v", key, got, want)
			}
		}
		if v := r.reached[prefix]; v != strconv.Itoa(rounds) {
			t.Errorf("partition %s is at version %s", prefix, v)
		}
	}
	if len(r.cache.states) != len(final[0])+len(final[1])+len(final[2])+len(final[3]) {
		t.Errorf("%d states in the cache", len(r.cache.states))
	}
}

// produce is the producer of one partition: a change a round, now and then a list or a
// bookmark. It leaves in live the objects that must be in the cache at the end.
func produce(ctx context.Context, r *rig, prefix string, rounds, keys int, live map[string]*object) error {
	for v := 1; v <= rounds; v++ {
		key := prefix + "k" + strconv.Itoa(v*v%keys)
		o := state(key, v, "U"+prefix)
		c := set(o)
		if v%11 == 0 && live[key] != nil {
			c = del(o)
			delete(live, key)
		} else {
			live[key] = o
		}
		err := r.Push(ctx, prefix, o.version, []delta.Event[*object]{c})
		if err == nil && v%50 == 1 {
			var list []delta.Item[*object]
			for _, o := range live {
				list = append(list, item(o))
			}
			err = r.Replace(ctx, prefix, o.version, list, delta.ReplaceOptions{NewHistory: v == 101})
		}
		if err == nil && v%7 == 0 {
			err = r.Bookmark(ctx, prefix, o.version)
		}
		if err != nil {
			return fmt.Errorf("version %d: %w", v, err)
		}
	}
	return nil
}
