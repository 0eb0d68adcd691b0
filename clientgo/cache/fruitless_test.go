package cache_test

import (
	"errors"
	"net/http"
	"path"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// TestWatchesOfNoUseLeadToAList has every watch fail in the same way, while lists go well: the
// cache must have what they say within a minute, and an hour must cost no more requests than
// with client-go.
func TestWatchesOfNoUseLeadToAList(t *testing.T) {
	event := func(status runtime.Object) func(metav1.ListOptions) (watch.Interface, error) {
		return opens(2*time.Second, watch.Event{Type: watch.Error, Object: status})
	}
	refused := func(err error) func(metav1.ListOptions) (watch.Interface, error) {
		return func(metav1.ListOptions) (watch.Interface, error) { return nil, err }
	}
	unreadable := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding").AsObject(errors.New("no magic number"))
	for name, open := range map[string]func(metav1.ListOptions) (watch.Interface, error){
		"events that the client cannot read": event(unreadable),
		"ERROR events of code 500":           event(&apierrors.NewInternalError(errors.New("storage")).ErrStatus),
		"ERROR events without a status":      event(&corev1.Pod{}),
		"refused with 500":                   refused(apierrors.NewInternalError(errors.New("storage"))),
		"refused with 504":                   refused(apierrors.NewTimeoutError("too large a version", 1)),
		"refused by the watcher itself":      refused(errors.New("it does not watch")),
	} {
		t.Run(name, func(t *testing.T) {
			requests := map[string]int{}
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				server := &script{watch: open}
				lists := 0
				server.list = func(metav1.ListOptions) (runtime.Object, error) {
					if lists++; lists == 1 {
						return podList("1"), nil
					}
					return podList("3", versioned("a", "2")), nil
				}
				informer := newInformer(server, &corev1.Pod{}, noOptions)
				run(t, informer)
				settle(time.Minute)
				if keys := informer.GetStore().ListKeys(); len(keys) != 1 {
					t.Errorf("after a minute the cache holds %q, requested was %q", keys, server.take())
				}
				server.take()
				time.Sleep(time.Hour)
				requests[path.Base(t.Name())] = len(server.take())
			})
			for constructor, n := range requests {
				if n > requests["client-go"] {
					t.Errorf("%s sends %d requests in an hour, client-go %d", constructor, n, requests["client-go"])
				}
			}
			t.Log(requests)
		})
	}
}
