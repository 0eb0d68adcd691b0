package controllers

import (
	"context"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
)

// watchDelay is the delay of late events.
const watchDelay = 500 * time.Millisecond

// delayWatches makes every event late.
func (w *world) delayWatches() {
	w.server.Inject(apisim.Match{Verb: "watch"}, apisim.Stall(apisim.EachFrame, watchDelay))
}

// freshness counts the calls that see a state older than the writes of the calls before.
type freshness struct {
	mu      sync.Mutex // guards the rest
	written int        // the version of the last write
	gone    types.UID  // of the object whose last finalizer was removed
	stale   int
	writes  int
}

// begin is called by each call with the object that it sees.
func (f *freshness) begin(d *appsv1.Deployment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d != nil && (version(d) < f.written || d.UID == f.gone) {
		f.stale++
	}
}

// wrote is called after each write, with the answer.
func (f *freshness) wrote(d *appsv1.Deployment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	f.written = version(d)
	if d.DeletionTimestamp != nil && len(d.Finalizers) == 0 {
		f.gone = d.UID
	}
}

func (f *freshness) counts() (stale, writes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stale, f.writes
}

// version returns the resource version of an object; 0 if it is no number.
func version(d *appsv1.Deployment) int {
	n, err := strconv.Atoi(d.ResourceVersion)
	if err != nil {
		return 0
	}
	return n
}

// staleAfterStatus: each call counts up a status and asks for another call in a millisecond.
// It returns how many calls saw a status older than the last one written.
func staleAfterStatus(w *world, s stack) float64 {
	const writes = 20
	w.create(deployment(opsNamespace, "a"))
	w.delayWatches()
	var fresh freshness
	s.start(w, program{name: "writer", workers: 1, call: func(
		ctx context.Context, _ string, d *appsv1.Deployment, c client,
	) (time.Duration, error) {
		fresh.begin(d)
		if d == nil || d.Status.Replicas >= writes {
			return 0, nil
		}
		d = d.DeepCopy()
		d.Status.Replicas++
		written, err := c.updateStatus(ctx, d)
		if err != nil {
			return 0, err
		}
		fresh.wrote(written)
		return time.Millisecond, nil
	}})
	w.await("the status is not counted up", func() bool {
		_, n := fresh.counts()
		return n >= writes
	})
	time.Sleep(10 * watchDelay)
	stale, _ := fresh.counts()
	return float64(stale)
}

// staleAfterFinalizer: a call removes the last finalizer of a deleted object and asks for another
// call in a millisecond. It returns how many calls saw the object again.
func staleAfterFinalizer(w *world, s stack) float64 {
	d := deployment(opsNamespace, "a")
	d.Finalizers = []string{"example.com/program"}
	w.create(d)
	w.delayWatches()
	var fresh freshness
	s.start(w, program{name: "finalizer", workers: 1, call: func(
		ctx context.Context, _ string, d *appsv1.Deployment, c client,
	) (time.Duration, error) {
		fresh.begin(d)
		if d == nil || d.DeletionTimestamp == nil {
			return 0, nil
		}
		d = d.DeepCopy()
		d.Finalizers = nil
		written, err := c.update(ctx, d)
		if err != nil {
			return 0, crclient.IgnoreNotFound(err)
		}
		fresh.wrote(written)
		return time.Millisecond, nil
	}})
	time.Sleep(10 * watchDelay)
	_, err := w.server.Delete(w.Context(), deployments, opsNamespace, "a")
	if err != nil {
		w.Fatal(err)
	}
	w.await("the finalizer is not removed", func() bool {
		_, n := fresh.counts()
		return n > 0
	})
	time.Sleep(10 * watchDelay)
	stale, _ := fresh.counts()
	return float64(stale)
}
