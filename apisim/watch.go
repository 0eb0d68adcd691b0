package apisim

import (
	"errors"
	"net/http"
	"sort"
	"time"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
)

const (
	// A watch that names no timeout lasts between one and two of these.
	minWatchTimeout = 30 * time.Minute
	// timeoutNotice is how long before its timeout a watch gets a bookmark, which is
	// what a real server does.
	timeoutNotice = 2 * time.Second
	// maxWatchBatch is how many events are written before a flush.
	maxWatchBatch = 500
)

// watch is one running watch. It has no buffer of its own: it reads the history of
// its resource from a position, and ends when the history no longer reaches there.
type watch struct {
	server    *Server
	resource  *resource
	selection selection
	form      form
	bookmarks bool

	w        http.ResponseWriter
	call     *call    // nil if the request has met no fault
	lag      *replica // what the watch is served from, nil once it has caught up
	flush    func() error
	position int    // in the resource's history, counted from its beginning
	after    uint64 // events up to this version are not wanted; it may be in the future
	sent     uint64 // the version up to which everything was sent
}

// errEnded says that a watch is over and nothing is left to say.
var errEnded = errors.New("the watch is over")

func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	f, err := negotiate(r, res, stream)
	if err != nil {
		writeError(w, r, err)
		return
	}
	o, err := s.listOptions(r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	selected, err := newSelection(res, p, o)
	if err != nil {
		writeError(w, r, err)
		return
	}
	version, err := parseVersion(o.ResourceVersion)
	if err != nil {
		writeError(w, r, err)
		return
	}
	watch := &watch{server: s, resource: res, selection: selected, form: f, bookmarks: o.AllowWatchBookmarks, w: w, call: callOf(r), lag: lagOf(r), flush: http.NewResponseController(w).Flush}
	w.Header().Set("Content-Type", f.contentType())
	w.WriteHeader(http.StatusOK)
	if watch.call != nil && watch.call.answered {
		return // a fault has ended it at its head
	}
	watch.run(r, o, version)
}

// run sends the initial state, if one is wanted, and then events until the watch
// ends.
func (w *watch) run(r *http.Request, o *internalversion.ListOptions, version uint64) {
	timeout := w.server.random.duration(minWatchTimeout, 2*minWatchTimeout)
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	var notice <-chan time.Time
	if timeout > timeoutNotice {
		timer := time.NewTimer(timeout - timeoutNotice)
		defer timer.Stop()
		notice = timer.C
	}
	streamed := o.SendInitialEvents != nil && *o.SendInitialEvents
	wanted := streamed || (o.SendInitialEvents == nil && version == 0)
	if streamed && o.ResourceVersion == "" && w.lag != nil {
		version = w.server.newest() // a replica waits until it has seen all
	}
	if streamed {
		if err := w.server.await(r, version); err != nil {
			w.fail(err)
			return
		}
	}
	if err := w.begin(version, wanted, o.ResourceVersion == ""); err != nil {
		w.fail(err)
		return
	}
	if streamed && w.bookmark(true) != nil {
		return
	}
	if w.flush() == nil {
		w.follow(r, notice, end.C)
	}
}

// begin finds the position of the watch, and sends the present state if it is
// wanted. newest says that no other state will do.
func (w *watch) begin(version uint64, initial, newest bool) error {
	if w.behind() && !newest && initial && version <= w.lag.version {
		objects := w.lag.of(w.resource)
		if err := w.seek(w.lag.version); err != nil {
			return err
		}
		return w.sendState(objects)
	}
	w.server.mu.Lock()
	res := w.resource
	if initial || version == 0 {
		objects := res.objects.Copy()
		w.position, w.sent = res.dropped+len(res.history), w.server.version
		w.server.mu.Unlock()
		if initial {
			return w.sendState(objects)
		}
		return nil
	}
	w.server.mu.Unlock()
	return w.seek(version)
}

// seek puts the watch behind the events up to a version.
func (w *watch) seek(version uint64) error {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	res := w.resource
	if version < res.floor {
		return errExpired(version, res.floor)
	}
	w.position = res.dropped + sort.Search(len(res.history), func(i int) bool { return res.history[i].version > version })
	w.after, w.sent = version, version
	return nil
}

// sendState sends objects as ADDED events.
func (w *watch) sendState(objects *btree.Map[string, object]) error {
	var err error
	objects.Scan(func(_ string, obj object) bool {
		if w.selection.matches(obj) {
			var frame []byte
			if frame, err = encodeEvent(w.resource, w.form, "ADDED", obj); err == nil {
				err = w.write("ADDED", keyOf(obj.GetNamespace(), obj.GetName()), frame)
			}
		}
		return err == nil
	})
	return err
}

// follow sends events as they come, until the client is gone, the time is up, or
// the history has left the watch behind.
func (w *watch) follow(r *http.Request, notice, end <-chan time.Time) {
	ticker := time.NewTicker(w.server.o.BookmarkInterval)
	defer ticker.Stop()
	for {
		events, changed, err := w.next()
		if err != nil {
			w.fail(err)
			return
		}
		if len(events) > 0 {
			if w.send(events) != nil || w.flush() != nil {
				return
			}
			continue
		}
		select {
		case <-changed:
		case <-w.catchesUp():
		case <-ticker.C:
			if w.tellVersion() != nil {
				return
			}
		case <-notice:
			if w.tellVersion() != nil {
				return
			}
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// next returns the events at the position, or what to wait for when there are none.
func (w *watch) next() (events []*event, changed <-chan struct{}, err error) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	res := w.resource
	switch {
	case w.server.closed || res.removed:
		return nil, nil, errEnded
	case w.position < res.compacted:
		return nil, nil, errExpired(w.sent, res.floor)
	case w.position < res.dropped:
		return nil, nil, errEnded // it was too slow: it resumes, and is told then
	}
	events = res.history[w.position-res.dropped:]
	events = events[:min(len(events), maxWatchBatch)]
	if w.behind() {
		events = events[:sort.Search(len(events), func(i int) bool { return events[i].version > w.lag.version })]
	}
	if len(events) == 0 && res.retired {
		return nil, nil, errEnded
	}
	w.position += len(events)
	if len(events) > 0 {
		w.sent = max(w.sent, events[len(events)-1].version) // a watch of the future stays there
	}
	return events, res.changed, nil
}

// tellVersion sends a bookmark, whose version counts the writes to other resources
// too if nothing of this one is left to send.
func (w *watch) tellVersion() error {
	w.server.mu.Lock()
	if w.sent > w.server.version {
		w.server.mu.Unlock()
		return nil // it began in the future, for which the server cannot vouch
	}
	if w.position == w.resource.dropped+len(w.resource.history) && !w.behind() {
		w.sent = max(w.sent, w.server.version)
	}
	w.server.mu.Unlock()
	if err := w.bookmark(false); err != nil {
		return err
	}
	return w.flush()
}

// send writes the events that the watch sees.
func (w *watch) send(events []*event) error {
	for _, e := range events {
		if e.version <= w.after {
			continue
		}
		kind, frame, err := e.frame(w.resource, w.form, w.selection)
		if err != nil {
			return err
		}
		if kind == "" {
			continue
		}
		if err := w.write(kind, e.key, frame); err != nil {
			return err
		}
	}
	return nil
}

// write sends a frame. Of the tables of a watch only the first names the columns.
func (w *watch) write(kind, key string, frame []byte) error {
	if w.call != nil {
		w.call.out.next = frameData{kind: kind, key: key}
	}
	w.form.headless = w.form.table
	_, err := w.w.Write(frame)
	return err
}

// bookmark tells the version up to which everything was sent, if the watch allows
// it.
func (w *watch) bookmark(endsInitial bool) error {
	if !w.bookmarks {
		return nil
	}
	obj, err := bookmarkOf(w.server.o.Scheme, w.resource, w.form, w.sent, endsInitial)
	if err != nil {
		return err
	}
	frame, err := encodeEvent(w.resource, w.form, "BOOKMARK", obj)
	if err != nil {
		return err
	}
	return w.write("BOOKMARK", "", frame)
}

// fail ends the watch with an ERROR event, as a real server does for what it finds
// out after the answer has begun.
func (w *watch) fail(err error) {
	if errors.Is(err, errEnded) {
		return
	}
	status := statusFor(err)
	raw, err := encode(w.form, status)
	if err != nil {
		return
	}
	frame, err := frameOf(w.form, watchError, raw)
	if err != nil {
		return
	}
	if w.write(watchError, "", frame) == nil {
		w.flush() //nolint:errcheck // the watch is over either way
	}
}

const watchError = "ERROR"
