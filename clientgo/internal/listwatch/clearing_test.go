package listwatch

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// withoutLabels takes the labels away.
func withoutLabels(obj runtime.Object) {
	if p, ok := obj.(*corev1.Pod); ok {
		p.Labels = nil
	}
}

func labelled(name string) *corev1.Pod {
	p := pod(name, "1")
	p.Labels = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return p
}

// TestClearing clears what is listed and watched, by all four methods, and leaves bookmarks
// and errors as they are.
func TestClearing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := watch.NewFakeWithChanSize(8, false)
		lw := Clearing(&cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				return &corev1.PodList{Items: []corev1.Pod{*labelled("a"), *labelled("b")}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return from, nil },
		}, withoutLabels)
		with := lw.(cache.ListerWatcherWithContext)
		for name, list := range map[string]func() (runtime.Object, error){
			//lint:ignore SA1019 wrappers that programs wrote for client-go call it
			"List":            func() (runtime.Object, error) { return lw.List(metav1.ListOptions{}) },
			"ListWithContext": func() (runtime.Object, error) { return with.ListWithContext(t.Context(), metav1.ListOptions{}) },
		} {
			got, err := list()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range got.(*corev1.PodList).Items {
				if p.Labels != nil || p.UID != "u" {
					t.Errorf("%s returns %+v", name, p)
				}
			}
		}
		//lint:ignore SA1019 wrappers that programs wrote for client-go call it
		w, err := lw.Watch(metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error} {
			from.Action(kind, labelled("c"))
			event := <-w.ResultChan()
			if cleared := len(event.Object.(*corev1.Pod).Labels) == 0; cleared != (kind != watch.Bookmark && kind != watch.Error) {
				t.Errorf("%s: cleared %t", kind, cleared)
			}
		}
		from.Stop()
		if event, open := <-w.ResultChan(); open {
			t.Errorf("received %v after the end", event)
		}
	})
}

// TestClearingWatchStops stops a watch whose events nobody takes, twice.
func TestClearingWatchStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := watch.NewFakeWithChanSize(1, false)
		lw := Clearing(&cache.ListWatch{WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return from, nil }}, withoutLabels)
		w, err := lw.(cache.WatcherWithContext).WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		from.Add(labelled("a"))
		synctest.Wait() // it holds the event
		w.Stop()
		w.Stop()
		synctest.Wait()
		if _, open := <-w.ResultChan(); open || !from.IsStopped() {
			t.Error("the watch goes on after Stop")
		}
	})
}

// unstreaming says that it cannot stream lists.
type unstreaming struct{ cache.ListWatch }

func (*unstreaming) IsWatchListSemanticsUnSupported() bool { return true }

// TestClearingPassesOn: errors, nothing, and what lists can do.
func TestClearingPassesOn(t *testing.T) {
	lw := &unstreaming{}
	if Clearing(lw, nil) != cache.ListerWatcher(lw) {
		t.Error("with nothing to clear, there is a wrapper")
	}
	lw.ListWithContextFunc = func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, context.Canceled }
	lw.WatchFuncWithContext = func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, context.Canceled }
	cleared := Clearing(lw, withoutLabels).(*clearing)
	list, err := cleared.ListWithContext(t.Context(), metav1.ListOptions{})
	if list != nil || err != context.Canceled {
		t.Errorf("List returns %v, %v", list, err)
	}
	w, err := cleared.WatchWithContext(t.Context(), metav1.ListOptions{})
	if w != nil || err != context.Canceled {
		t.Errorf("Watch returns %v, %v", w, err)
	}
	if !cleared.IsWatchListSemanticsUnSupported() {
		t.Error("lists can be streamed")
	}
	if _, versions := New(cleared, nil, nil); versions.Trusted() {
		t.Error("the versions of a fake are trusted")
	}
}
