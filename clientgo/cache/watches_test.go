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
// event, bookmarks included, without a list.
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
// opened again, with pauses, without a list.
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

// TestWatchUnreadable: if the server cannot read an object that is deleted all the same, the
// watch ends with an error about it, and without an event of the delete. The object must leave
// the cache nevertheless.
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
					t.Errorf("the handler received %q", notes)
				}
			})
		})
	}
}
