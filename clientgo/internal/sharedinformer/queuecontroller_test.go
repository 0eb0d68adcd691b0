package sharedinformer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// plainQueue is a queue without batches, whose calls may fail. It takes a second to close.
type plainQueue struct {
	cache.Queue
	err    error
	closed bool
}

func (q *plainQueue) Resync() error         { return q.err }
func (q *plainQueue) Bookmark(string) error { return q.err }
func (q *plainQueue) Close() {
	q.Queue.Close()
	time.Sleep(time.Second)
	q.closed = true
}

func (q *plainQueue) Add(obj any) error {
	if q.err != nil {
		return q.err
	}
	return q.Queue.Add(obj)
}

// listOfOne has one object, and a watch with an addition and a bookmark.
type listOfOne struct{}

func (listOfOne) IsWatchListSemanticsUnSupported() bool { return true }

func (listOfOne) List(metav1.ListOptions) (runtime.Object, error) {
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items: []corev1.Pod{*numbered("a", "1")}}, nil
}

func (listOfOne) Watch(metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(2, false)
	w.Add(numbered("b", "2"))
	time.AfterFunc(time.Second, func() { w.Action(watch.Bookmark, numbered("", "3")) })
	return w, nil
}

func TestQueueControllerReportsFailures(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no")} {
		synctest.Test(t, func(t *testing.T) {
			told := quietErrors(t)
			queue := &plainQueue{err: failure, Queue: cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
				KeyFunction:  cache.DeletionHandlingMetaNamespaceKeyFunc,
				KnownObjects: cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc),
			})}
			processed := 0
			controller := NewQueueController(&cache.Config{
				Queue: queue, ListerWatcher: listOfOne{}, ObjectType: &corev1.Pod{},
				FullResyncPeriod: time.Minute,
				Process: func(any, bool) error {
					processed++
					return failure
				},
				ProcessBatch: func([]cache.Delta, bool) error {
					t.Error("a queue without batches yields one")
					return nil
				},
			})
			ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
			time.AfterFunc(90*time.Second, cancel)
			controller.RunWithContext(ctx)
			if !queue.closed {
				t.Error("Run has returned before the queue was closed")
			}
			controller.RunWithContext(t.Context()) // returns at once, with a report
			synctest.Wait()
			slices.Sort(*told)
			want, items := []string{"A controller was not run"}, 2
			if failure != nil {
				want, items = append(want, "A queue did not resync", "A queue refused a bookmark",
					"A queue refused a change", "An item of a queue was not processed"), 1
			}
			if !slices.Equal(*told, want) || processed != items {
				t.Errorf("with failure %v, %d items were processed and told is %q, want %d and %q",
					failure, processed, *told, items, want)
			}
		})
	}
}
