package contract_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
)

func TestP08_RemovedNamespaceIsDeletedInOneStep(t *testing.T) {
	inNamespaces(t, func(w *world) {
		for n := range 5 {
			w.createIn("a", fmt.Sprint("object-", n), "1")
			w.createIn("b", fmt.Sprint("object-", n), "1")
		}
		w.start()
		var told follow.Follower
		w.probe.handle(func(e event) {
			told.Handle(e)
			if e.Type == tidings.Deleted && len(w.probe.state()) != 5 {
				w.Errorf("at %v the cache holds %v", e, w.probe.state())
			}
		}, tidings.HandlerOptions{})
		synctest.Wait()
		told.Take()
		i := w.probe.informer()
		before := i.Health()
		w.must(i.RemoveNamespace("b"))
		w.must(i.RemoveNamespace("b"))
		w.createIn("b", "unseen", "1")
		synctest.Wait()
		if watches := len(w.server.Watches()); watches != 1 {
			w.Errorf("%d watches are running after the removal, want 1", watches)
		}
		w.holds("a")
		expect(w, told.Texts(),
			"Deleted b/object-0 tombstone 1", "Deleted b/object-1 tombstone 1",
			"Deleted b/object-2 tombstone 1", "Deleted b/object-3 tombstone 1",
			"Deleted b/object-4 tombstone 1")
		if after := i.Health(); after.Lists < before.Lists || after.Watches < before.Watches {
			w.Errorf("counts went back: lists from %d to %d, watches from %d to %d",
				before.Lists, after.Lists, before.Watches, after.Watches)
		}

		// It comes back with its present objects.
		w.must(i.AddNamespace("b"))
		w.must(i.WaitForSync(w.ctx))
		synctest.Wait()
		w.holds("a", "b")
		if n := len(told.Take()); n != 6 {
			w.Errorf("told %d times, want 6 adds", n)
		}
	})
}

// TestP08_WaitForSyncIncludesARemoval, which a handler with PolicyBlock holds up.
func TestP08_WaitForSyncIncludesARemoval(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.createIn("a", "x", "1")
		w.createIn("b", "y", "1")
		w.start()
		blocks := &follow.Follower{}
		w.probe.handle(blocks.Handle, tidings.HandlerOptions{Policy: tidings.PolicyBlock, Limit: 1})
		synctest.Wait()
		blocks.Block()
		for n := range 3 {
			w.createIn("a", fmt.Sprint("more-", n), "1")
			synctest.Wait()
		}
		i := w.probe.informer()
		w.must(i.RemoveNamespace("b"))
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if err := i.WaitForSync(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("WaitForSync: %v, while the cache holds %v", err, w.probe.state())
		}
		unblock := time.AfterFunc(time.Second, blocks.Unblock)
		defer unblock.Stop()
		w.must(i.WaitForSync(w.ctx))
		w.holds("a")
	})
}
