package cache_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"
)

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("ask your operator"))
	errInternal  = apierrors.NewInternalError(errors.New("no leader"))
	errExpired   = apierrors.NewResourceExpired("too old")
	errPatience  = apierrors.NewTooManyRequests("later", 1)
	errRefused   = &url.Error{Op: "Get", URL: "https://server", Err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
)

// failures is a watch error handler that records its calls.
type failures struct {
	mu    sync.Mutex // guards notes
	notes []string
}

func (f *failures) handle(_ context.Context, r *clientgo.Reflector, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, fmt.Sprintf("%s of %s at %q", kindOfError(err), r.TypeDescription(), r.LastSyncResourceVersion()))
}

func (f *failures) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	notes := f.notes
	f.notes = nil
	return notes
}

// opens returns a function that opens a watch with these events. The watch ends after a time.
func opens(after time.Duration, events ...watch.Event) func(metav1.ListOptions) (watch.Interface, error) {
	return func(metav1.ListOptions) (watch.Interface, error) {
		w := watch.NewRaceFreeFake()
		send(w, events...)
		time.AfterFunc(after, w.Stop)
		return w, nil
	}
}

func failsWith(err error) func(metav1.ListOptions) (watch.Interface, error) {
	return func(metav1.ListOptions) (watch.Interface, error) { return nil, err }
}

// status is an ERROR event.
func status(err *apierrors.StatusError) watch.Event {
	return watch.Event{Type: watch.Error, Object: &err.ErrStatus}
}

// TestWatchErrorHandler: it is called for failures before a watch has begun, but not while the
// server cannot be reached or answers 429, and not for the end of a watch.
func TestWatchErrorHandler(t *testing.T) {
	for _, tt := range []struct {
		name   string
		list   error
		watch  func(metav1.ListOptions) (watch.Interface, error)
		stream func(metav1.ListOptions) (watch.Interface, error)
		want   string // each call of the handler; "" is no call
	}{
		{name: "all is well"},
		{name: "list forbidden", list: errForbidden, want: `Forbidden of *v1.Pod at ""`},
		{name: "list 500", list: errInternal, want: `InternalError of *v1.Pod at ""`},
		{name: "list 429", list: errPatience, want: `TooManyRequests of *v1.Pod at ""`},
		{name: "list refused", list: errRefused, want: `other of *v1.Pod at ""`},
		{name: "list and stream forbidden", list: errForbidden, stream: failsWith(errForbidden), want: `Forbidden of *v1.Pod at ""`},
		{name: "stream forbidden, list not", stream: failsWith(errForbidden)},
		{name: "watch forbidden", watch: failsWith(errForbidden), want: `Forbidden of *v1.Pod at "5"`},
		{name: "watch 500", watch: failsWith(errInternal), want: `InternalError of *v1.Pod at "5"`},
		{name: "watch 410", watch: failsWith(errExpired), want: `Expired of *v1.Pod at "5"`},
		{name: "watch without a reason", watch: failsWith(errors.New("no")), want: `other of *v1.Pod at "5"`},
		{name: "watch refused", watch: failsWith(errRefused)},
		{name: "watch 429", watch: failsWith(errPatience)},
		{name: "watch ends at once", watch: opens(time.Nanosecond)},
		{name: "watch ends", watch: opens(time.Second)},
		{name: "watch ends after an event", watch: opens(time.Second, added(versioned("b", "6")))},
		{name: "ERROR 410", watch: opens(time.Second, status(errExpired))},
		{name: "ERROR 500", watch: opens(time.Second, status(errInternal))},
		{name: "ERROR 403", watch: opens(time.Second, status(errForbidden))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				server := &script{watch: tt.watch, stream: tt.stream, list: func(metav1.ListOptions) (runtime.Object, error) {
					return podList("5", versioned("a", "5")), tt.list
				}}
				informer := newInformer(server, &corev1.Pod{}, noOptions)
				var told failures
				must(t, informer.SetWatchErrorHandlerWithContext(told.handle))
				run(t, informer)
				settle(2 * time.Minute)
				notes := told.take()
				if tt.want == "" && len(notes) > 0 || tt.want != "" && len(notes) < 2 {
					t.Errorf("the handler was called %d times: %q", len(notes), notes)
				}
				if other := slices.IndexFunc(notes, func(note string) bool { return note != tt.want }); other >= 0 && tt.want != "" {
					t.Errorf("the handler received %s, want %s", notes[other], tt.want)
				}
			})
		})
	}
}

// TestWatchErrorHandlerReflector: the methods of the handler's reflector can be called, and it
// can be logged. The context of the handler is that of Run.
func TestWatchErrorHandlerReflector(t *testing.T) {
	type value struct{}
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		server := &script{watch: failsWith(errForbidden), list: func(metav1.ListOptions) (runtime.Object, error) { return podList("5"), nil }}
		informer := newInformer(server, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{ObjectDescription: "pods of mine"})
		told := make(chan string)
		must(t, informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *clientgo.Reflector, err error) {
			if r.Name() == "" {
				t.Error("the reflector has no name")
			}
			clientgo.DefaultWatchErrorHandler(ctx, r, err) // it logs the reflector
			select {
			case told <- fmt.Sprint(r.TypeDescription(), " ", r.LastSyncResourceVersion(), " ", ctx.Value(value{})):
			case <-ctx.Done():
			}
		}))
		ctx, cancel := context.WithCancel(context.WithValue(quiet(t), value{}, "mine"))
		done := running(ctx, informer)
		for range 2 {
			if got, want := <-told, "pods of mine 5 mine"; got != want {
				t.Errorf("the handler received %q, want %q", got, want)
			}
		}
		cancel()
		<-done
	})
}

// TestWatchErrorHandlerOld: the handler without a context is called as well. The last handler
// that was set is used.
func TestWatchErrorHandlerOld(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		source.ListError = errors.New("access denied")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		told := make(chan error, 1)
		must(t, informer.SetWatchErrorHandlerWithContext(func(context.Context, *clientgo.Reflector, error) { t.Error("the first handler was called") }))
		must(t, informer.SetWatchErrorHandler(func(_ *clientgo.Reflector, err error) {
			select {
			case told <- err:
			default:
			}
		}))
		run(t, informer)
		if err := <-told; !strings.Contains(err.Error(), "access denied") {
			t.Errorf("the handler received %v", err)
		}
		if informer.HasSynced() {
			t.Error("it has synced without a list")
		}
	})
}
