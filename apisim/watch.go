package apisim

import (
	"errors"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// minWatchTimeout is the shortest duration of a watch without a timeout, which lasts up to
	// twice as long.
	minWatchTimeout = 30 * time.Minute
	// timeoutNotice is the time from the last bookmark of a watch to its timeout, as in a real
	// server.
	timeoutNotice = 2 * time.Second
	// maxWatchBatch is the largest number of events that are written before a flush.
	maxWatchBatch = 500
)

// watcher is one running watch. It has no buffer: it reads the history of its resource from a
// position, and ends when the history no longer reaches that position.
type watcher struct {
	*exchange
	listRequest
	flush    func() error
	position int    // in the history, see collection.dropped
	after    uint64 // events up to this version are not sent; it may be in the future
	sent     uint64 // the events up to this version were sent
}

// errEnded ends a watch without an event.
var errEnded = errors.New("the watch is over")

// watch answers a watch. Errors occur before the head of the answer.
func (x *exchange) watch() error {
	l, err := x.parseList(eventStream)
	if err != nil {
		return err
	}
	w := &watcher{exchange: x, listRequest: l, flush: http.NewResponseController(x.w).Flush}
	x.w.Header().Set("Content-Type", l.form.contentType())
	x.w.WriteHeader(http.StatusOK)
	if !x.answered { // a fault at the head ends the answer
		w.run()
	}
	return nil
}

// run sends the initial state, if it is requested, and then events until the watch ends.
func (w *watcher) run() {
	timeout := w.server.random.duration(minWatchTimeout, 2*minWatchTimeout)
	if w.TimeoutSeconds != nil && *w.TimeoutSeconds > 0 {
		timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	end := time.After(timeout)
	var notice <-chan time.Time
	if timeout > timeoutNotice {
		notice = time.After(timeout - timeoutNotice)
	}
	if err := w.begin(); err != nil {
		w.fail(err)
		return
	}
	if w.flush() == nil {
		w.follow(notice, end)
	}
}

func (w *watcher) begin() error {
	streamed := w.SendInitialEvents != nil && *w.SendInitialEvents
	initial := streamed || w.SendInitialEvents == nil && w.version == 0
	if streamed {
		if w.ResourceVersion == "" {
			w.server.mu.Lock()
			w.version = w.server.version // a server that lags has to reach it first
			w.server.mu.Unlock()
		}
		if err := w.await(w.version); err != nil {
			return err
		}
	}
	objects, err := w.seek(initial)
	if err != nil {
		return err
	}
	if initial {
		if err := w.sendState(objects); err != nil {
			return err
		}
	}
	if streamed {
		return w.bookmark(true)
	}
	return nil
}

// seek finds the position of the watch, and returns the initial state if that is requested.
func (w *watcher) seek(initial bool) (*objectTree, error) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	res, version := w.res, w.version
	var objects *objectTree
	switch {
	case version == 0 && w.ResourceVersion == "":
		objects, version = res.objects.Copy(), w.server.version
	case initial || version == 0:
		objects, version = w.stateLocked()
		if version < res.floor { // the version is of a laggard
			return nil, errExpired(version, res.floor)
		}
	case version < w.oldestLocked():
		return nil, errExpired(version, w.oldestLocked())
	}
	w.position = res.dropped + res.after(version)
	w.after, w.sent = version, version
	return objects, nil
}

func (w *watcher) sendState(objects *objectTree) error {
	for key, obj := range inNamespace(objects, "", "") {
		if !w.selected.matches(obj) {
			continue
		}
		frame, err := encodeEvent(w.res, w.form, watch.Added, obj)
		if err == nil {
			err = w.write(watch.Added, key, frame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// follow sends events as they occur, until the client is gone, the timeout is reached, or the
// history no longer reaches the position of the watch.
func (w *watcher) follow(notice, end <-chan time.Time) {
	ticker := time.NewTicker(w.server.o.BookmarkInterval)
	defer ticker.Stop()
	for {
		events, changed, later, err := w.next()
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
			continue
		case <-later:
			continue
		case <-ticker.C:
		case <-notice:
		case <-end:
			return
		case <-w.r.Context().Done():
			return
		}
		if w.sendVersion() != nil {
			return
		}
	}
}

// next returns the events at the position, and channels of which one is closed when there are more
// events.
func (w *watcher) next() (events []*event, changed, later <-chan struct{}, err error) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	res := w.res
	switch {
	case w.server.closed:
		return nil, nil, nil, errEnded
	case w.position < res.compacted:
		return nil, nil, nil, errExpired(w.sent, res.floor)
	case w.position < res.dropped:
		return nil, nil, nil, errEnded // too slow: the client receives the error when it resumes
	}
	history := res.history
	if reached, moved := w.reachedLocked(); reached < w.server.version {
		history, later = history[:max(w.position-res.dropped, res.after(reached))], moved
	}
	events = history[w.position-res.dropped:]
	events = events[:min(len(events), maxWatchBatch)]
	if len(events) == 0 && !w.server.servesLocked(res) {
		return nil, nil, nil, errEnded
	}
	w.position += len(events)
	if len(events) > 0 {
		w.sent = max(w.sent, events[len(events)-1].version) // w.sent may be in the future
	}
	return events, res.changed, later, nil
}

// sendVersion sends a bookmark with the version of the newest write to any resource, if all events
// of this resource were sent.
func (w *watcher) sendVersion() error {
	w.server.mu.Lock()
	reached, _ := w.reachedLocked()
	if w.sent > reached {
		w.server.mu.Unlock()
		return nil // the watch is of a version of the future
	}
	if w.position-w.res.dropped >= w.res.after(reached) {
		w.sent = reached
	}
	w.server.mu.Unlock()
	if err := w.bookmark(false); err != nil {
		return err
	}
	return w.flush()
}

func (w *watcher) send(events []*event) error {
	for _, e := range events {
		if e.version <= w.after {
			continue
		}
		kind, frame, err := e.frame(w.res, w.form, w.selected)
		if err == nil && kind != "" {
			err = w.write(kind, e.key, frame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write sends a frame. Only the first table of a watch has columns.
func (w *watcher) write(kind watch.EventType, key string, frame []byte) error {
	w.upcoming = frameData{event: kind, key: key}
	w.form.withoutColumns = w.form.table
	_, err := w.w.Write(frame)
	return err
}

// bookmark sends the version up to which all events were sent, if the watch allows bookmarks.
func (w *watcher) bookmark(endsInitial bool) error {
	if !w.AllowWatchBookmarks {
		return nil
	}
	obj, err := w.res.newObject()
	if err != nil {
		return err
	}
	obj.SetResourceVersion(versionString(w.sent))
	if endsInitial {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	frame, err := encodeEvent(w.res, w.form, watch.Bookmark, obj)
	if err != nil {
		return err
	}
	return w.write(watch.Bookmark, "", frame)
}

// fail ends the watch with an ERROR event, as a real server does with an error after the
// head of the answer.
func (w *watcher) fail(err error) {
	if errors.Is(err, errEnded) {
		return
	}
	frame, err := encodeFrame(w.form, watch.Error, statusFor(err))
	if err == nil && w.write(watch.Error, "", frame) == nil {
		w.flush() //nolint:errcheck // the watch is over
	}
}
