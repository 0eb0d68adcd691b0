package reflector

import "time"

// errSuspected is a watch that was ended by SuspectWatch.
var errSuspected = tornError("the server has shown another state than its watch, " +
	"which may be that of a server that lags: the watch is begun anew")

// leastWatched is the least age of a watch that SuspectWatch ends.
const leastWatched = 30 * time.Second

// SuspectWatch reports that a consistent read has shown another state of the object of a key than
// the watch has brought. The watch ends, unless it began less than half a minute ago, and is begun
// anew: with several servers, maybe at one that does not lag. If the read has shown a state before
// version, which was cached before the read, the server may have been set back, and is checked
// before the next watch, or while the watch goes on once it has brought a bookmark. Without a uid, the
// version of the collection is before version, which was reached before the read. version and uid are
// "" otherwise. It may be called from any goroutine.
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

// takeDoubt makes a read that has contradicted the history a suspicion of a rewind. It reports whether
// there was one.
func (r *Reflector[T]) takeDoubt() bool {
	older := r.suspected.Swap(nil)
	if older != nil {
		r.history.suspect()
		r.history.doubted = *older
	}
	return older != nil
}
