package cache_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// TestWatchGoesOn: a watch that ends after an event is opened again from the version of the last
// event, bookmarks included, and nothing is listed.
func TestWatchGoesOn(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		server := &script{watch: func(o metav1.ListOptions) (watch.Interface, error) {
			if !o.AllowWatchBookmarks {
				t.Error("the watch does not ask for bookmarks")
			}
			switch o.ResourceVersion {
			case "1":
				return opens(2*time.Second, added(versioned("a", "2")))(o)
			case "2":
				return opens(2*time.Second, modified(versioned("a", "3")), bookmark("7"))(o)
			default:
				return watch.NewRaceFreeFake(), nil
			}
		}}
		informer := newInformer(server, &corev1.Pod{}, noOptions)
		handler := record(t, informer)
		run(t, informer)
		time.Sleep(time.Minute)
		handler.want(t, "add default/a 2", "update default/a 2→3")
		server.want(t, `stream from ""`, `list from "0" limit 500 `, `watch from "1"`, `watch from "2"`, `watch from "7"`)
		same(t, "LastSyncResourceVersion", informer.LastSyncResourceVersion(), "7")
	})
}

// TestWatchIsTriedAgain: while connections are refused or the server answers 429, the watch is
// opened again, with pauses, and nothing is listed.
func TestWatchIsTriedAgain(t *testing.T) {
	for name, err := range map[string]error{"refused": errRefused, "429": errPatience} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				var asked int
				server := &script{watch: func(o metav1.ListOptions) (watch.Interface, error) {
					asked++
					if asked < 4 {
						return nil, err
					}
					return opens(time.Hour, added(versioned("a", "2")))(o)
				}}
				informer := newInformer(server, &corev1.Pod{}, noOptions)
				handler := record(t, informer)
				run(t, informer)
				began := time.Now()
				handler.want(t)
				time.Sleep(2 * time.Minute)
				handler.want(t, "add default/a 2")
				for n, request := range server.take() {
					if strings.HasPrefix(request, "list") && n > 1 {
						t.Errorf("request %d is a list", n)
					}
				}
				if time.Since(began) < time.Second {
					t.Error("no time has passed")
				}
			})
		})
	}
}

// TestWatchExpired: after a 410, as an answer or as an event, everything is listed. What
// has gone meanwhile is deleted as a tombstone with its last known state.
func TestWatchExpired(t *testing.T) {
	for name, expire := range map[string]func(metav1.ListOptions) (watch.Interface, error){
		"answer": failsWith(errExpired), "event": opens(time.Hour, status(errExpired)),
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				server := &script{list: func(metav1.ListOptions) (runtime.Object, error) {
					return podList("5", versioned("gone", "1"), versioned("same", "2"), versioned("new", "3")), nil
				}}
				server.watch = func(o metav1.ListOptions) (watch.Interface, error) {
					if o.ResourceVersion != "5" {
						return watch.NewRaceFreeFake(), nil
					}
					server.list = func(metav1.ListOptions) (runtime.Object, error) {
						return podList("9", versioned("same", "2"), versioned("new", "8"), versioned("more", "9")), nil
					}
					return expire(o)
				}
				informer := newInformer(server, &corev1.Pod{}, noOptions)
				handler := record(t, informer)
				run(t, informer)
				time.Sleep(10 * time.Second)
				handler.want(t, "add default/gone 1 initial", "tombstone default/gone 1",
					"add default/same 2 initial", "update default/same 2→2",
					"add default/new 3 initial", "update default/new 3→8", "add default/more 9")
				wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/more", "default/new", "default/same")
			})
		})
	}
}

// TestWatchUnreadable: when the server can no longer read an object and it was deleted in
// spite of that, the watch ends with an error that says so and there is no event of the
// delete. The object has to go nevertheless.
func TestWatchUnreadable(t *testing.T) {
	unreadable := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonStoreReadError, Message: "corrupt object has been deleted"}}
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		server := &script{list: func(metav1.ListOptions) (runtime.Object, error) {
			return podList("3", versioned("a", "1"), versioned("corrupt", "2")), nil
		}}
		server.watch = func(o metav1.ListOptions) (watch.Interface, error) {
			if o.ResourceVersion != "3" {
				return watch.NewRaceFreeFake(), nil
			}
			server.list = func(metav1.ListOptions) (runtime.Object, error) { return podList("5", versioned("a", "1")), nil }
			return opens(time.Hour, status(unreadable))(o)
		}
		informer := newInformer(server, &corev1.Pod{}, noOptions)
		handler := record(t, informer)
		run(t, informer)
		settle(5 * time.Minute)
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a")
		handler.want(t, "add default/a 1 initial", "update default/a 1→1", "add default/corrupt 2 initial", "tombstone default/corrupt 2")
	})
}

// TestWatchWrongObjects: objects of another type, and unstructured objects of another kind, are
// dropped; the watch goes on.
func TestWatchWrongObjects(t *testing.T) {
	thing := func(kind, name, version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("example.com/v1")
		u.SetKind(kind)
		u.SetNamespace("default")
		u.SetName(name)
		u.SetResourceVersion(version)
		return u
	}
	for _, tt := range []struct {
		name    string
		example runtime.Object
		events  []watch.Event
		want    []string
	}{
		{"typed", &corev1.Pod{}, []watch.Event{
			{Type: watch.Added, Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "wrong", ResourceVersion: "2"}}},
			added(versioned("right", "3")),
		}, []string{"add default/right 3"}},
		{"unstructured", thing("Right", "", ""), []watch.Event{
			{Type: watch.Added, Object: thing("Wrong", "wrong", "2")},
			{Type: watch.Added, Object: thing("Right", "right", "3")},
		}, []string{"add default/right 3"}},
		{"unstructured without a kind", &unstructured.Unstructured{}, []watch.Event{
			{Type: watch.Added, Object: thing("One", "one", "2")},
			{Type: watch.Added, Object: thing("Other", "other", "3")},
		}, []string{"add default/one 2", "add default/other 3"}},
		{"anything", nil, []watch.Event{
			{Type: watch.Added, Object: thing("One", "one", "2")},
			added(versioned("other", "3")),
		}, []string{"add default/one 2", "add default/other 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				informer := newInformer(&script{watch: opens(time.Hour, tt.events...)}, tt.example, noOptions)
				handler := record(t, informer)
				run(t, informer)
				handler.want(t, tt.want...)
			})
		})
	}
}

// TestTypeDescription: errors name the description of the objects, their type, or the kind of
// unstructured objects.
func TestTypeDescription(t *testing.T) {
	thing := &unstructured.Unstructured{}
	thing.SetAPIVersion("example.com/v1")
	thing.SetKind("Thing")
	for _, tt := range []struct {
		example runtime.Object
		want    string
	}{
		{nil, "<unspecified>"},
		{&corev1.Pod{}, "*v1.Pod"},
		{&unstructured.Unstructured{}, "*unstructured.Unstructured"},
		{thing, "example.com/v1, Kind=Thing"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				server := &script{list: func(metav1.ListOptions) (runtime.Object, error) { return nil, errForbidden }}
				informer := newInformer(server, tt.example, noOptions)
				var told failures
				must(t, informer.SetWatchErrorHandlerWithContext(told.handle))
				run(t, informer)
				synctest.Wait()
				if notes := told.take(); len(notes) == 0 || notes[0] != "Forbidden of "+tt.want+` at ""` {
					t.Errorf("the handler was told %q", notes)
				}
			})
		})
	}
}
