package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// polls is the number of reads before a watch that was forbidden is tried again: some minutes.
const polls = 60

// Follower keeps a view of the selected Leases up to date. The fields are set before Run.
type Follower struct {
	Client *Client
	Times  Times
	// Requests are those of the goroutine that calls Run.
	Requests Requests
	// List lists the Leases into the view, and returns the version of the list.
	List func(ctx context.Context) (version string, err error)
	// Read reads the Leases into the view, while they cannot be watched.
	Read func(ctx context.Context) error
	// Observe takes the Lease of an event into the view.
	Observe func(l *coordinationv1.Lease, deleted bool)

	mu      sync.Mutex         // guards the rest
	restart context.CancelFunc // ends the running watch; another one begins
	polling error              // why the Leases are not watched, or nil
}

// Run follows the Leases until ctx ends: by a list and a watch, which resumes where it ended. A
// watch that fails for long, or that brings nothing for the duration of a Lease, in which each
// holder renews its own, is followed by a list. While these are forbidden, Run reads the Leases now
// and then.
func (f *Follower) Run(ctx context.Context) {
	version := ""
	for failures := 0; ctx.Err() == nil; {
		watching, cancel := context.WithCancel(ctx)
		f.setRestart(cancel)
		next, err := f.watch(watching, version)
		restarted := watching.Err() != nil
		cancel()
		switch {
		case restarted:
			if IsTimeout(err) {
				f.Requests.Note(ctx, err)
			}
			next, failures = "", 0
		case apierrors.IsForbidden(err):
			f.poll(ctx, err)
			version = ""
			continue
		case err != nil && !isExpired(err):
			f.Requests.Note(ctx, err)
			if failures++; failures > MaxFailures {
				next = "" // a list shows what a watch that fails for long does not
			}
		case err == nil && next != version:
			failures = 0
		default:
			failures++
		}
		version = next
		Sleep(ctx, f.Times.Delay(max(failures, 1), err))
	}
}

func (f *Follower) setRestart(cancel context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restart = cancel
}

// Restart ends a watch that may be silent, on a connection that may be dead. Another one begins
// with a list.
func (f *Follower) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.restart != nil {
		f.restart()
	}
}

// watch lists the Leases if there is no version to watch from, and watches them until the watch
// ends. It returns the version to go on from, "" if that is not possible.
func (f *Follower) watch(ctx context.Context, version string) (string, error) {
	if version == "" {
		listed, err := f.List(ctx)
		if err != nil {
			return "", err
		}
		version = listed
	}
	silence := time.AfterFunc(f.Times.Duration, f.Restart)
	defer silence.Stop()
	w, err := f.Client.watch(ctx, version)
	if err != nil {
		if isExpired(err) {
			version = ""
		}
		return version, err
	}
	defer w.Stop()
	f.setPolling(nil)
	f.Requests.Note(ctx, nil)
	for event := range w.ResultChan() {
		silence.Reset(f.Times.Duration)
		l, ok := event.Object.(*coordinationv1.Lease)
		if !ok {
			return "", f.Client.requestError("watch", f.Client.selection.Name,
				apierrors.FromObject(event.Object))
		}
		if l.ResourceVersion == "" {
			return "", f.Client.requestError("watch", f.Client.selection.Name, errNoLease)
		}
		version = l.ResourceVersion
		if event.Type != watch.Bookmark {
			f.Observe(l, event.Type == watch.Deleted)
		}
	}
	return version, nil
}

// poll reads the Leases for a while in the place of a watch that is forbidden.
func (f *Follower) poll(ctx context.Context, reason error) {
	every := f.Times.Duration / 5
	f.setPolling(fmt.Errorf("the lease is read every %v: %w", every, reason))
	for range polls {
		f.Requests.Note(ctx, f.Read(ctx))
		if !Sleep(ctx, every) {
			return
		}
	}
}

// Polling returns why the Leases are read now and then in the place of a watch; nil: they are
// watched.
func (f *Follower) Polling() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.polling
}

func (f *Follower) setPolling(reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polling = reason
}
