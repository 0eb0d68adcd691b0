package cache_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// streams returns a function that opens streamed lists with these events.
func streams(events ...watch.Event) func(metav1.ListOptions) (watch.Interface, error) {
	return opens(time.Hour, events...)
}

// TestStreamedList: if the server can stream lists, the list is the beginning of the watch. The
// cache is empty until the end of the list, and then includes the changes up to the end.
func TestStreamedList(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		w := watch.NewRaceFreeFake()
		server := &script{stream: func(o metav1.ListOptions) (watch.Interface, error) {
			if !o.AllowWatchBookmarks || o.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan || !*o.SendInitialEvents {
				t.Errorf("the options %+v do not ask for a streamed list", o)
			}
			return w, nil
		}}
		informer := newInformer(server, &corev1.Pod{}, noOptions)
		handler := record(t, informer)
		run(t, informer)
		notTheEnd := bookmark("4")
		notTheEnd.Object.(*corev1.Pod).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "false"}
		send(w, added(versioned("a", "1")), added(versioned("b", "2")), modified(versioned("a", "3")),
			added(versioned("c", "4")), deleted(versioned("c", "5")), bookmark("5"), notTheEnd)
		handler.want(t)
		if informer.HasSynced() || len(informer.GetStore().List()) > 0 {
			t.Error("it shows something before the end of the list")
		}
		send(w, initialEnd("6"))
		handler.want(t, "add default/a 3 initial", "add default/b 2 initial")
		same(t, "LastSyncResourceVersion", informer.LastSyncResourceVersion(), "6")
		send(w, modified(versioned("b", "7")))
		handler.want(t, "update default/b 2→7")
		server.want(t, `stream from ""`)
	})
}

// TestStreamedListRefused: a server that refuses to stream receives a list in pages of 500 from
// version 0, and then a watch from the version of the list.
func TestStreamedListRefused(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		w := watch.NewRaceFreeFake()
		server := &script{
			list:  func(metav1.ListOptions) (runtime.Object, error) { return podList("5", versioned("a", "1")), nil },
			watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
		}
		_, handler := follow(t, newInformer, server)
		send(w, added(versioned("b", "6")))
		handler.want(t, "add default/a 1 initial", "add default/b 6")
		server.want(t, `stream from ""`, `list from "0" limit 500 `, `watch from "5"`)
	})
}

// TestListPageForgotten: when the continue token expires between two pages, the list is read
// again without pages, and the watch error handler is not called.
func TestListPageForgotten(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		server := &script{list: func(o metav1.ListOptions) (runtime.Object, error) {
			switch {
			case o.Continue != "":
				return nil, errExpired
			case o.Limit > 0:
				list := podList("9", versioned("a", "1"), versioned("gone", "2"))
				list.Continue = "next"
				return list, nil
			default:
				return podList("12", versioned("a", "1"), versioned("b", "11")), nil
			}
		}}
		informer := newInformer(server, &corev1.Pod{}, noOptions)
		var told failures
		must(t, informer.SetWatchErrorHandlerWithContext(told.handle))
		handler := record(t, informer)
		runSynced(t, informer)
		handler.want(t, "add default/a 1 initial", "add default/b 11 initial")
		same(t, "calls of the watch error handler", len(told.take()), 0)
	})
}

// TestListTooLarge: a server that has not reached the version of a list, or has forgotten it,
// is listed without a version.
func TestListTooLarge(t *testing.T) {
	tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	for name, err := range map[string]error{"too large": tooLarge, "expired": errExpired} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				var watched bool
				server := &script{
					list: func(o metav1.ListOptions) (runtime.Object, error) {
						switch o.ResourceVersion {
						case "0":
							return podList("10", versioned("a", "1")), nil
						case "":
							return podList("20", versioned("a", "1"), versioned("b", "11")), nil
						default:
							return nil, err
						}
					},
					watch: func(o metav1.ListOptions) (watch.Interface, error) {
						if !watched {
							watched = true
							return nil, errExpired
						}
						return watch.NewRaceFreeFake(), nil
					},
				}
				informer := newInformer(server, &corev1.Pod{}, noOptions)
				run(t, informer)
				settle(10 * time.Second)
				wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a", "default/b")
				same(t, "LastSyncResourceVersion", informer.LastSyncResourceVersion(), "20")
			})
		})
	}
}
