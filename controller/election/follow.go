package election

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// polls is the number of reads before a watch that was forbidden is tried again: some minutes.
const polls = 60

// follow keeps the view up to date until ctx ends: by a list and a watch, which resumes where it
// ended. While these are forbidden, it reads the Lease now and then.
func (e *Elector) follow(ctx context.Context) {
	version := ""
	for failures := 0; ctx.Err() == nil; {
		watching, cancel := context.WithCancel(ctx)
		e.setRestart(cancel)
		next, err := e.watch(watching, version)
		restarted := watching.Err() != nil
		cancel()
		switch {
		case restarted:
			if isTimeout(err) {
				e.reads.note(ctx, e, err)
			}
			next, failures = "", 0
		case apierrors.IsForbidden(err):
			e.poll(ctx, err)
			version = ""
			continue
		case err != nil && !isExpired(err):
			e.reads.note(ctx, e, err)
			failures++
		case err == nil && next != version:
			failures = 0
		default:
			failures++
		}
		version = next
		sleep(ctx, e.delay(max(failures, 1), err))
	}
}

func (e *Elector) setRestart(cancel context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restart = cancel
}

// restartWatch ends a watch that may be silent, on a connection that may be dead. Another one
// begins with a list.
func (e *Elector) restartWatch() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restart()
}

// watch lists the Lease if there is no version to watch from, and watches it until the watch ends.
// It returns the version to go on from, "" if that is not possible.
func (e *Elector) watch(ctx context.Context, version string) (string, error) {
	if version == "" {
		listed, err := e.list(ctx)
		if err != nil {
			return "", err
		}
		version = listed
	}
	w, err := e.leases.watch(ctx, version)
	if err != nil {
		if isExpired(err) {
			version = ""
		}
		return version, err
	}
	defer w.Stop()
	e.setPolling(nil)
	e.reads.note(ctx, e, nil)
	for event := range w.ResultChan() {
		lease, ok := event.Object.(*coordinationv1.Lease)
		if !ok {
			return "", e.leases.requestError("watch", apierrors.FromObject(event.Object))
		}
		version = lease.ResourceVersion
		switch {
		case event.Type == watch.Bookmark || lease.Name != e.o.Name:
		case event.Type == watch.Deleted:
			e.observe(nil, version)
		default:
			e.observe(lease, version)
		}
	}
	return version, nil
}

func (e *Elector) list(ctx context.Context) (version string, err error) {
	e.mu.Lock()
	sentAt := e.view.version
	e.mu.Unlock()
	list, err := e.leases.list(ctx)
	if err != nil {
		return "", err
	}
	var lease *coordinationv1.Lease
	version = list.ResourceVersion
	for i := range list.Items {
		if list.Items[i].Name == e.o.Name {
			lease, version = &list.Items[i], list.Items[i].ResourceVersion
		}
	}
	e.observeRead(lease, version, sentAt)
	return list.ResourceVersion, nil
}

// poll reads the Lease for a while in the place of a watch that is forbidden.
func (e *Elector) poll(ctx context.Context, reason error) {
	every := e.o.Duration / 5
	e.setPolling(fmt.Errorf("the lease is read every %v: %w", every, reason))
	for range polls {
		e.reads.note(ctx, e, e.read(ctx))
		if !sleep(ctx, every) {
			return
		}
	}
}

func (e *Elector) setPolling(reason error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.view.polling = reason
}
