package reflector

import (
	"context"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

var optional = Options[object]{Optional: true}

const emptied = "replace  (new history true):"

func TestOptionalResourceThatIsMissingIsEmptyAtOnce(t *testing.T) {
	missing := answer{expect: "stream", err: errNotFound}
	run(t, []answer{missing, missing, missing, listed()}, optional, func(r *Reflector[object], _ *script, j *journal) {
		same(t, "queue", j.read(), emptied)
		if h := r.Health(); h.State != health.NoSuchResource || h.LastError == nil {
			t.Errorf("health is %+v", h)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "queue", j.read(), emptied, replaced)
		if h := r.Health(); h.State != health.Watching || h.Version != "5" {
			t.Errorf("health is %+v", h)
		}
	})
}

// vanished is a resource that the server has not got for a number of requests.
func vanished(requests int) []answer {
	answers := []answer{listed(read{err: errCut}), {expect: "watch 5", err: errNotFound}}
	for range requests {
		answers = append(answers, answer{expect: "stream", err: errNotFound})
	}
	return answers
}

func TestOptionalResourceThatVanishesIsEmptyWhenThatIsSure(t *testing.T) {
	run(t, append(vanished(20), listed()), optional, func(r *Reflector[object], _ *script, j *journal) {
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "queue within a minute", j.read(), replaced)
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "queue", j.read(), replaced, emptied)
		if h := r.Health(); h.State != health.NoSuchResource || h.Version != "" {
			t.Errorf("health is %+v", h)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		same(t, "queue when it is back", j.read(), replaced, emptied, replaced)
	})
}

func TestOptionalResourceThatIsMissingForAMomentStays(t *testing.T) {
	answers := append(vanished(4), answer{expect: "stream", err: errInternal})
	answers = append(answers, vanished(2)[2:]...)
	run(t, append(answers, listed()), optional, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		// It was missing for two minutes, but another answer came in between.
		same(t, "queue", j.read(), replaced, replaced)
	})
}

func TestResourceThatIsNotOptionalStaysAsItWas(t *testing.T) {
	run(t, append(vanished(20), listed()), Options[object]{}, func(_ *Reflector[object], _ *script, j *journal) {
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		same(t, "queue", j.read(), replaced, replaced)
	})
}

// cacheOf is a cache by key, of which the queue asks what is known.
type cacheOf map[string]object

func (c cacheOf) Get(key string) (object, bool) { o, ok := c[key]; return o, ok }

func (c cacheOf) Prefix(string) iter.Seq2[string, object] {
	return func(yield func(string, object) bool) {
		for _, key := range slices.Sorted(maps.Keys(c)) {
			if !yield(key, c[key]) {
				return
			}
		}
	}
}

func (c cacheOf) apply(b delta.Batch[object]) {
	for _, d := range b.Changes {
		if d.Type == change.Deleted {
			delete(c, d.Key)
		} else {
			c[d.Key] = d.New
		}
	}
}

// TestP16_OptionalResourceThatComesBackWithAnOlderHistory has a server that is set back to a
// state from before the resource was defined, and then it is defined again.
func TestP16_OptionalResourceThatComesBackWithAnOlderHistory(t *testing.T) {
	back := answer{expect: "stream", reads: []read{
		{events: []source.Event[object]{event(source.Added, "a", "1"), bookmark(source.InitialEventsEnd, "2")}},
		{after: time.Second, events: []source.Event[object]{event(source.Added, "b", "4")}},
	}}
	synctest.Test(t, func(t *testing.T) {
		cache := cacheOf{}
		queue, err := delta.New(delta.Options[object]{
			Known:    func() delta.Known[object] { return cache },
			Describe: func(o object) (version, uid string) { return o.version, "uid-" + o.name },
			Compare:  delta.CompareDecimal, Partitions: []string{""},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := New(&script{t: t, answers: append(vanished(20), back)}, Queue[object](queue), optional)
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		for queue.Pop(ctx, cache.apply) == nil {
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		same(t, "cache", slices.Sorted(maps.Keys(cache)), "a", "b")
	})
}
