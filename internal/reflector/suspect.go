package reflector

import (
	"errors"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/delta"
)

// errSuspected is a watch that was ended by SuspectWatch.
var errSuspected = tornError("the server has shown another state than its watch, " +
	"which may be that of a server that lags: the watch is begun anew")

const (
	// leastWatched is the least age of a watch that SuspectWatch ends.
	leastWatched = 30 * time.Second
	// leastMistrusted is the least time between two lists because of watches that were suspected.
	leastMistrusted = 5 * time.Minute
	// leastListed is the least time between two lists that CatchUp demands.
	leastListed = 10 * time.Second
)

// errMistrusted means that a new watch has not shown what reads have shown. The server may have been set
// back, so that it never does.
var errMistrusted = errors.New("two watches in a row have not brought a state that the server has shown")

// mistrust counts the watches in a row that SuspectWatch has ended.
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

// SuspectWatch reports that a consistent read has shown another state of the object of a key than
// the watch has brought. The watch ends, unless it began less than half a minute ago, and is begun
// anew: with several servers, maybe at one that does not lag. If the read has shown a state before
// version, which was cached before the read, the server may have been set back, and is checked
// before the next watch, or while the watch goes on once it has brought a bookmark. Without a uid, the
// version of the collection is before version, which was reached before the read. version and uid are
// "" otherwise. When the next watch is suspected too, the collection is listed. It may be called from any
// goroutine.
func (r *Reflector[T]) SuspectWatch(key, version, uid string) {
	if version != "" {
		doubt := lastChange{key: key, version: version, uid: uid}
		if uid == "" {
			doubt = lastChange{version: version}
		}
		r.suspected.Store(&doubt)
	}
	if watch := r.running.Load(); watch != nil && time.Since(watch.opened) >= leastWatched {
		watch.cancel(errSuspected)
	}
}

// errListDue ends a watch in whose place the collection is listed.
var errListDue = tornError("the collection is listed, up to a version that no event may tell of")

// demand is a version that a list is to reach.
type demand struct {
	mu      sync.Mutex // guards the rest
	version string     // "" without a demand
	last    time.Time
}

// CatchUp has the collection listed, in the place of the running watch, unless it has reached a version that
// a consistent read has shown, or a list was demanded a moment ago. That the cache has what the server has
// does not prove that it has reached the version: the watch may have yet to bring objects that came and
// went. If the list fails, the watch goes on. It may be called from any goroutine.
func (r *Reflector[T]) CatchUp(version string) {
	d := &r.demand
	d.mu.Lock()
	if time.Since(d.last) >= leastListed {
		d.version, d.last = version, time.Now()
	}
	d.mu.Unlock()
	r.endOutdatedWatch()
}

// isListDue reports whether a list is demanded.
func (r *Reflector[T]) isListDue() bool {
	r.demand.mu.Lock()
	defer r.demand.mu.Unlock()
	order, ok := delta.CompareDecimal(r.recorder.snapshot().Version, r.demand.version)
	return ok && order < 0
}

// meet is called when a list begins.
func (d *demand) meet() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version = ""
}

// takeDoubt makes a read that has contradicted the history a suspicion of a rewind. It reports whether
// there was one.
func (r *Reflector[T]) takeDoubt() bool {
	older := r.suspected.Swap(nil)
	if older != nil {
		r.history.suspect()
		r.history.doubted, r.history.alive = *older, lastChange{}
	}
	return older != nil
}
