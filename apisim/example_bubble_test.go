package apisim_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apisim"
)

// TestExampleOfABubble shows a watch that is cut, and one that gets a 410, in virtual time.
// It is a test and not an Example because a bubble needs a testing.T. docs/testing.md has
// the same with an informer.
func TestExampleOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, server := t.Context(), apisim.Start(t)
		client, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		made, err := apisim.Create(ctx, server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
		if err != nil {
			t.Fatal(err)
		}
		// open returns a watch from the creation of the pod on.
		open := func() watch.Interface {
			t.Helper()
			w, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			return w
		}

		// The connection of the watch is closed after ten minutes.
		server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.CutLater(10*time.Minute))
		began := time.Now()
		if event, more := <-open().ResultChan(); more {
			t.Errorf("the watch was to end without an event, and brought %v", event)
		}
		if took := time.Since(began); took != 10*time.Minute { // virtual minutes
			t.Errorf("the watch was cut after %v", took)
		}

		// The next one cannot resume.
		server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(0, http.StatusGone))
		event := <-open().ResultChan()
		if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
			t.Errorf("the watch brought %v: %v", event.Type, err)
		}
		server.ExpectRequests(t, apisim.Match{Verb: "watch", Resource: "pods"}, 2)
	})
}
