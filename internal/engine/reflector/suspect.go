package reflector

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

const (
	// leastWatched is the least age of a watch that SuspectWatch ends.
	leastWatched = 30 * time.Second
	// leastMistrusted is the least time between two lists because of watches that were suspected.
	leastMistrusted = 5 * time.Minute
	// leastListed is the least time between two lists that CatchUp demands.
	leastListed = 10 * time.Second
)

var (
	// errSuspected is a watch that was ended by SuspectWatch.
	errSuspected = tornError("the server has shown another state than its watch, " +
		"which may be that of a server that lags: the watch is begun anew")
	// errListDue ends a watch in whose place the collection is listed.
	errListDue = tornError("the collection is listed, up to a version that no event may tell of")
	// errMistrusted means that a new watch has not shown what reads have shown. The server may have
	// been set back, so that it never does.
	errMistrusted = errors.New(
		"two watches in a row have not brought a state that the server has shown")
)

// watchControl ends the running watch for reasons that others than its reader find. Any goroutine
// may use it.
type watchControl[T any] struct {
	*shared[T]
	running   atomic.Pointer[stream[T]]  // the running watch, or the last one
	suspected atomic.Pointer[lastChange] // a read has shown an older state of it; nil for none
	demand    demand
	// overtaken demands a list: the list of slots was older than the reached version. It is written
	// under filling.mu.
	overtaken atomic.Bool
}

// end ends the running watch.
func (c *watchControl[T]) end(cause error) {
	if watch := c.running.Load(); watch != nil {
		watch.cancel(cause)
	}
}

// endOutdated ends the running watch if a list is due, or if the watch does not select slots that
// are held, so that it is begun anew from its last version. Such a watch hands on nothing more in
// any case: see push.
func (c *watchControl[T]) endOutdated() {
	watch := c.running.Load()
	switch {
	case watch == nil:
	case c.overtaken.Load():
		watch.cancel(errOlderList)
	case c.isListDue():
		watch.cancel(errListDue)
	case !watch.asked.covers(c.slots.held()):
		watch.cancel(errSlotsCame)
	}
}

// isListDue reports whether CatchUp demands a list.
func (c *watchControl[T]) isListDue() bool {
	_, _, version := c.recorder.present()
	return c.demand.isAfter(version)
}

// suspect is Reflector.SuspectWatch.
func (c *watchControl[T]) suspect(key, version, uid string) {
	if version != "" {
		change := lastChange{key: key, version: version, uid: uid}
		if uid == "" {
			change = lastChange{version: version}
		}
		c.suspected.Store(&change)
	}
	if watch := c.running.Load(); watch != nil && time.Since(watch.opened) >= leastWatched {
		watch.cancel(errSuspected)
	}
}

// noteChange drops the suspicion of an object that has changed or ended since.
func (c *watchControl[T]) noteChange(key string) {
	if older := c.suspected.Load(); older != nil && older.key == key {
		c.suspected.CompareAndSwap(older, nil)
	}
}

// demand is a version that a list is to reach.
type demand struct {
	mu      sync.Mutex // guards the rest
	version string     // "" without a demand
	last    time.Time
}

// ask demands a list, unless one was demanded a moment ago.
func (d *demand) ask(version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.last) >= leastListed {
		d.version, d.last = version, time.Now()
	}
}

// isAfter reports whether the demanded version is after the reached one.
func (d *demand) isAfter(reached string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	order, ok := delta.CompareDecimal(reached, d.version)
	return ok && order < 0
}

// meet is called when a list begins.
func (d *demand) meet() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version = ""
}

// mistrust counts the watches in a row that SuspectWatch has ended. Only the goroutine of Run uses
// it.
type mistrust struct {
	watches int
	listed  time.Time // because of them
}

func (m *mistrust) watchEnded(err error) {
	if m.watches++; !errors.Is(err, errSuspected) {
		m.watches = 0
	}
}

// demandsList reports whether a list is due, in the place of another watch.
func (m *mistrust) demandsList() bool {
	if m.watches < 2 || time.Since(m.listed) < leastMistrusted {
		return false
	}
	*m = mistrust{listed: time.Now()}
	return true
}
