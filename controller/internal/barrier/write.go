package barrier

import (
	"time"

	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// write is a write of a call, until the cache of an informer shows it and its event has come. Its
// times are as Barrier.Now returns them.
type write struct {
	written.Write
	by         *caches.Informer
	of         *pending      // the key whose call has written
	slot       int           // the slot of that call, or NoSlot
	at         time.Duration // the time at which it was recorded
	sent       time.Duration // the time at which it was sent
	settled    bool          // no call waits for it: the cache shows it, or need not show it
	held       bool          // the cache has shown it; it may go back to another history
	echoed     bool          // its event has come, or does not come any more
	hasVersion bool          // the version of its event is recorded
	asked      bool          // the server had to be asked for its outcome

	links [2]struct{ prev, next *write } // in the lists ofKey and ofObject
}

func (w *write) id() caches.ObjectID {
	return caches.ObjectID{Informer: w.by.Number, Key: w.Object}
}

// shownTo returns the slot whose owners alone see the write: the slot of the object, if a server
// may select the slots of the cache. It returns NoSlot if all see it.
func (w *write) shownTo() int {
	if held := w.by.Slots(); held != nil && held.Key() == slot.UID && w.UID != "" {
		return slot.UID.Of(w.UID, "")
	}
	return NoSlot
}

// mustShow reports whether the cache of each owner has to show the version of the write: the
// version belongs to an object which no selection leaves out.
func (w *write) mustShow() bool {
	_, name := written.SplitKey(w.Object)
	_, held := w.Reached(w.by)
	return name != "" && held && !w.by.Selects()
}

// measure records the time from the sending of the write until its cache held it, at the time at.
// It ignores writes that are settled in another way: conflicts, writes whose version was not in the
// answer, and writes to objects that the informer no longer follows.
func (w *write) measure(at time.Duration) {
	if _, ok := w.Reached(w.by); ok && !w.Conflict && !w.asked && w.by.Over() == nil {
		w.by.Lag.Observe(max(at-w.sent, 0))
	}
}
