package apisim

import (
	"context"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// Frozen is the lag of an [Instance] whose watch caches stand still.
const Frozen time.Duration = 1<<63 - 1

// Instance is one of several API servers before the storage of a [Server]. It writes to the
// storage. It reads objects and lists without a resource version, lists of an exact version, later
// pages and the initial state of a watch without a version from the storage, and all else from
// watch caches of its own, which may lag. A request for a version that they do not have waits up to
// three seconds. It is then answered with 504 and the cause ResourceVersionTooLarge. A watch from
// such a version waits for it. The methods of an Instance may be called from any goroutine.
type Instance struct {
	frontend

	// The server's lock guards the rest.

	lag     time.Duration
	version uint64 // of the watch caches
	// began is the version at which the instance started: its watch caches have no events up to
	// that version.
	began  uint64
	unread []writeTime   // the writes that the watch caches do not have
	timer  *time.Timer   // for the next of these writes
	later  chan struct{} // closed when version changes
}

// writeTime is a version of the storage and the time of its write.
type writeTime struct {
	version uint64
	at      time.Time
}

type instanceKey struct{}

// AddInstance adds an API server, without lag. Like a server that has just started, it answers a
// watch from an earlier version with 410. Close of the server closes it too.
func (s *Server) AddInstance() *Instance {
	r := &Instance{later: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.version, r.began = s.version, s.version
	r.begin(s, r)
	r.pipe.storage = s.pipe
	if s.closed {
		r.pipe.Close() //nolint:errcheck // Close returns no error
		return r
	}
	s.instances = append(s.instances, r)
	r.listen(r.pipe)
	return r
}

// SetLag makes the watch caches lag behind the storage, for good if the lag is [Frozen]. With a
// shorter lag than before they catch up at once. With a longer one they stand still first.
func (r *Instance) SetLag(lag time.Duration) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.lag = lag
	r.readLocked()
}

// SetPaused stops the process of the instance, as SIGSTOP does, or continues it. A stopped instance
// accepts connections and answers nothing. It may carry out requests that it had begun.
func (r *Instance) SetPaused(paused bool) { r.pipe.setPaused(paused) }

// SetAvailable kills the instance, cutting its connections, or starts it again.
func (r *Instance) SetAvailable(available bool) {
	if !available {
		r.pipe.setDown(forGood)
		cut(&r.frontend)
		return
	}
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	if wasDown := r.pipe.setDown(time.Time{}); wasDown {
		r.restartLocked()
	}
}

// CutConnections closes every open connection of the instance.
func (r *Instance) CutConnections() { cut(&r.frontend) }

// restartLocked makes the watch caches hold the present state.
func (r *Instance) restartLocked() {
	r.unread = nil
	r.began = r.server.version
	r.reachLocked(r.server.version)
}

// readLocked makes the watch caches read the writes that are older than the lag, and sets the timer
// for the next write.
func (r *Instance) readLocked() {
	if r.timer != nil {
		r.timer.Stop()
	}
	now := time.Now()
	due := 0
	for due < len(r.unread) && now.Sub(r.unread[due].at) >= r.lag {
		due++
	}
	if due > 0 {
		version := r.unread[due-1].version
		r.unread = slices.Delete(r.unread, 0, due)
		r.reachLocked(version)
	}
	if len(r.unread) > 0 && r.lag != Frozen && !r.server.closed {
		r.timer = time.AfterFunc(r.lag-now.Sub(r.unread[0].at), func() {
			r.server.mu.Lock()
			defer r.server.mu.Unlock()
			r.readLocked()
		})
	}
}

// reachLocked sets the version of the watch caches.
func (r *Instance) reachLocked(version uint64) {
	r.version = version
	close(r.later)
	r.later = make(chan struct{})
}

// wroteLocked records a write that the watch caches do not have yet.
func (r *Instance) wroteLocked(version uint64) {
	r.unread = append(r.unread, writeTime{version, time.Now()})
	r.readLocked()
}

// Balance returns a client configuration that reaches the instances like a load balancer for TCP.
// Each request uses a connection of its own, to one of the instances that accept connections. The
// server's seed determines which one.
func (s *Server) Balance(instances ...*Instance) *rest.Config {
	return clientConfig(&http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			up := slices.DeleteFunc(slices.Clone(instances), func(r *Instance) bool {
				return !r.pipe.isAvailable()
			})
			if len(up) == 0 {
				return nil, errRefused
			}
			return up[s.random.below(len(up))].pipe.dial(ctx, network, address)
		},
	})
}

// laggard is an old state of the server, which a fault serves until it is lifted.
type laggard struct {
	*Snapshot
	lifted <-chan struct{}
}

func (l *laggard) isBehind() bool {
	select {
	case <-l.lifted:
		return false
	default:
		return true
	}
}

// reachedLocked returns the version that the server of the request has in memory, and a channel
// that is closed when that version changes.
func (x *exchange) reachedLocked() (version uint64, later <-chan struct{}) {
	version, later = x.server.version, x.server.advanced
	if r := x.instance; r != nil {
		version, later = r.version, r.later
	}
	if l := x.laggard; l != nil && l.isBehind() && l.version < version {
		version, later = l.version, l.lifted
	}
	return version, later
}

// stateLocked returns the objects that the server of the request has in memory, and their version.
// An instance with a version before the history is treated as one that has listed the resource
// again.
func (x *exchange) stateLocked() (objects *objectTree, version uint64) {
	version, _ = x.reachedLocked()
	if version == x.server.version {
		return x.res.objects.Copy(), version
	}
	if l := x.laggard; l != nil && l.version == version {
		if c, ok := l.collections[x.res.collection]; ok {
			return c.objects.Copy(), version
		}
		return &objectTree{}, version // the resource did not exist
	}
	version = max(version, x.res.floor)
	objects, _ = x.res.at(version)
	return objects, version
}

// oldestLocked returns the version up to which the server of the request has no events.
func (x *exchange) oldestLocked() uint64 {
	if x.instance != nil {
		return max(x.res.floor, x.instance.began)
	}
	return x.res.floor
}
