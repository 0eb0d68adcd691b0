package sharedinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/source"
)

// script is a source that lists one page and sends no events.
type script struct {
	page source.Page[any]
	err  error
}

func (s *script) List(context.Context, source.ListOptions) (source.Page[any], error) {
	return s.page, s.err
}

func (s *script) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[any], error) {
	if o.SendInitialEvents {
		return nil, source.ErrStreamedListRefused
	}
	return silentStream{ctx}, nil
}

type silentStream struct{ ctx context.Context }

func (s silentStream) Close() error { return nil }

func (s silentStream) Next() ([]source.Event[any], error) {
	<-s.ctx.Done()
	return nil, s.ctx.Err()
}

func configMap(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: version}}
}

func itemOf(m *corev1.ConfigMap) source.Item[any] {
	return source.Item[any]{Key: source.Key(m.Namespace, m.Name), Version: m.ResourceVersion, Object: m}
}

// started runs an informer until the test ends.
func started(t *testing.T, i *Informer) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.RunWithContext(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
}

// quietErrors collects the messages of utilruntime, which then are not logged.
func quietErrors(t *testing.T) *[]string {
	t.Helper()
	var told []string
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, msg string, _ ...any) { told = append(told, msg) }}
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	return &told
}

func TestHealthSaysWhatTheInformerAndItsHandlersDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := quietErrors(t)
		errOtherType := errors.New("it is of another type")
		s := &script{page: source.Page[any]{Version: "9", Items: []source.Item[any]{
			itemOf(configMap("m", "3")), itemOf(configMap("unindexable", "4")), {Version: "5", Err: errOtherType},
		}}}
		i := New(Options{Source: s, Example: &corev1.ConfigMap{}, Indexers: cache.Indexers{"name": func(obj any) ([]string, error) {
			if obj.(*corev1.ConfigMap).Name == "unindexable" {
				return nil, errors.New("I do not index these")
			}
			return []string{obj.(*corev1.ConfigMap).Name}, nil
		}}})
		if h := i.Health(); h.State != tidings.StatePending || h.Synced {
			t.Errorf("before Run: %+v", h)
		}
		release := make(chan struct{})
		defer close(release)
		r, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-release }})
		if err != nil {
			t.Fatal(err)
		}
		started(t, i)

		h := i.Health()
		if h.Name != "*v1.ConfigMap" || h.State != tidings.StateWatching || !h.Synced || h.Objects != 2 || h.Version != "9" {
			t.Errorf("while watching: %+v", h)
		}
		if h.Dropped != 1 || !errors.Is(h.LastDropped, errOtherType) {
			t.Errorf("dropped %d, last %v; want the object of another type", h.Dropped, h.LastDropped)
		}
		if h.IndexErrors != 1 || h.LastIndexError == nil || !slices.Contains(*told, "An index function failed; the object has no entry in that index") {
			t.Errorf("index errors %d, last %v, reported %q", h.IndexErrors, h.LastIndexError, *told)
		}
		if len(h.Handlers) != 1 || h.Handlers[0].State != tidings.HandlerBusy || h.Handlers[0].Running != "a/m" || !strings.Contains(h.Handlers[0].Name, "TestHealth") {
			t.Errorf("handlers: %+v", h.Handlers)
		}
		if viaCache, ok := i.GetStore().(interface{ Health() tidings.Health }); !ok || viaCache.Health().Objects != 2 {
			t.Error("the cache does not say how its informer is")
		}
		if err := i.RemoveEventHandler(r); err != nil {
			t.Error(err)
		}
		if h := i.Health(); len(h.Handlers) != 0 {
			t.Errorf("a handler that was removed is in the health: %+v", h.Handlers)
		}
	})
}

func TestFailuresReachTheErrorHandlersOncePerState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		before := utilruntime.ErrorHandlers
		utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(_ context.Context, err error, msg string, pairs ...any) {
			told = append(told, fmt.Sprintln(append([]any{msg, err}, pairs[:4]...)...))
		}}
		defer func() { utilruntime.ErrorHandlers = before }()
		i := New(Options{Source: &script{err: errors.New("no route")}, Example: &corev1.ConfigMap{}})
		started(t, i)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if want := []string{"list and watch failed no route informer *v1.ConfigMap state Backoff\n"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
