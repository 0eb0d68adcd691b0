package apisim

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
// that is closed when it has another one.
func (x *exchange) reachedLocked() (version uint64, later <-chan struct{}) {
	version, later = x.server.version, x.server.advanced
	if r := x.instance; r != nil {
		version, later = r.version, r.later
	}
	if l := x.call.laggard; l != nil && l.isBehind() && l.version < version {
		version, later = l.version, l.lifted
	}
	return version, later
}

// stateLocked returns the objects that the server of the request has in memory, and their version.
// An instance whose version the history does not reach any more has listed the resource anew.
func (x *exchange) stateLocked() (objects *objectTree, version uint64) {
	version, _ = x.reachedLocked()
	if version == x.server.version {
		return x.res.objects.Copy(), version
	}
	if l := x.call.laggard; l != nil && l.version == version {
		if c, ok := l.collections[x.res.collection]; ok {
			return c.objects.Copy(), version
		}
		return &objectTree{}, version // the resource was not there
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
