package delta_test

import (
	"context"
	"fmt"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/store"
)

// Example_sync shows where objects are before the cache is synced.
func Example_sync() {
	ctx := context.Background()
	cache, err := store.New(store.Options[string]{})
	if err != nil {
		panic(err)
	}
	queue, err := delta.New(delta.Options[string]{
		Known: func() delta.Known[string] { return cache.Snapshot() },
	})
	if err != nil {
		panic(err)
	}
	synced := false
	report := func(when string) {
		fmt.Printf("%-26s queue %d  cache %d  synced %t\n", when, queue.Len(), cache.Len(), synced)
	}
	// apply applies a batch as an informer's processor does.
	apply := func(batch *delta.Batch[string]) {
		cache.Update(func(b *store.Batch[string]) {
			for _, d := range batch.Changes {
				if d.Type == change.Deleted {
					b.Delete(d.Key)
				} else {
					b.Set(d.Key, d.New)
				}
			}
		})
		report("  applied, not returned")
	}
	// pop takes one batch. The cache is synced when the batch that says so is applied.
	pop := func() {
		completes := false
		must(queue.Pop(ctx, func(batch *delta.Batch[string]) {
			apply(batch)
			completes = batch.Synced
		}))
		synced = synced || completes
	}
	report("nothing has arrived")

	// The reflector hands on the complete list, and then an event.
	must(queue.Replace(ctx, "", "100", []delta.Item[string]{
		{Key: "default/api", Version: "90", Object: "api"},
		{Key: "default/web", Version: "95", Object: "web"},
	}, delta.ReplaceOptions{}))
	must(queue.Push(ctx, "", "101", []delta.Event[string]{
		{Type: delta.Set, Item: delta.Item[string]{Key: "default/job", Version: "101", Object: "job"}},
	}))
	report("listed, nothing applied")

	// The processor takes one batch, and then the next.
	pop()
	report("the list is applied")
	pop()
	report("the event is applied")

	// Output:
	// nothing has arrived        queue 0  cache 0  synced false
	// listed, nothing applied    queue 3  cache 0  synced false
	//   applied, not returned    queue 3  cache 2  synced false
	// the list is applied        queue 1  cache 2  synced true
	//   applied, not returned    queue 1  cache 3  synced true
	// the event is applied       queue 0  cache 3  synced true
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
