package controller

import (
	"time"

	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// askAfter is the time for which a key waits for the caches. After it, the server is asked
// whether they are behind it.
const askAfter = written.AskAfter

// awaited is a write of a call, until the cache of an informer shows it and its event has come.
// Its times are those of the barrier.
type awaited struct {
	written.Write
	by         *caches.Informer
	of         *pending      // the key whose call has written
	slot       int           // the slot of that call, or noSlot
	at         time.Duration // the time at which it was recorded
	sent       time.Duration // the time at which it was sent
	shown      bool          // no wait: the cache shows it, or need not show it
	held       bool          // the cache has shown it; it may go back to another history
	echoed     bool          // its event has come, or does not come any more
	hasVersion bool          // the version of its event is recorded
	asked      bool          // the server had to be asked for its outcome

	links [2]struct{ prev, next *awaited } // in the lists ofKey and ofObject
}

func (w *awaited) id() objectID { return objectID{w.by.Number, w.Object} }

// shownTo returns the slot whose owners alone see the write: that of the object, if a server may select
// the slots of the cache. It returns noSlot if all see it.
func (w *awaited) shownTo() int {
	if held := w.by.Slots(); held != nil && held.Key() == ByUID && w.UID != "" {
		return ByUID.Of(w.UID, "")
	}
	return noSlot
}

// made reports whether the write has led to a change.
func (w *awaited) made(ch change) bool {
	if w.Gone && w.UID != "" {
		return w.UID == ch.deleted
	}
	return w.Version != "" && w.Version == ch.version
}

// mustShow reports whether the cache of each owner has to show the version of the write: the version is
// that of an object which no selection leaves out.
func (w *awaited) mustShow() bool {
	_, name := written.SplitKey(w.Object)
	_, held := w.Reached(w.by)
	return name != "" && held && !w.by.Selects()
}
