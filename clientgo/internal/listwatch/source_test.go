package listwatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/source"
)

// reports keeps the reports of a source.
type reports []error

func (r *reports) add(_ context.Context, err error) { *r = append(*r, err) }

// ofPods accepts pods.
var ofPods = Options{Example: &corev1.Pod{}, Report: new(reports).add}

// fake is a cache.ListerWatcher of functions.
type fake struct {
	list  func(metav1.ListOptions) (runtime.Object, error)
	watch func(metav1.ListOptions) (watch.Interface, error)
}

func (f *fake) List(o metav1.ListOptions) (runtime.Object, error)   { return f.list(o) }
func (f *fake) Watch(o metav1.ListOptions) (watch.Interface, error) { return f.watch(o) }

// lists returns a lister with one answer, which records the options.
func lists(list runtime.Object, err error, options *metav1.ListOptions) cache.ListerWatcher {
	return &fake{list: func(o metav1.ListOptions) (runtime.Object, error) {
		if options != nil {
			*options = o
		}
		return list, err
	}}
}

// TestSourceList checks the options of a list and the page of its answer.
func TestSourceList(t *testing.T) {
	var asked metav1.ListOptions
	var dropped reports
	list := &corev1.List{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "next", RemainingItemCount: new(int64(4))}}
	for _, obj := range []runtime.Object{pod("a", "1"), &corev1.Service{}, pod("b", "9")} {
		list.Items = append(list.Items, runtime.RawExtension{Object: obj})
	}
	src, versions := New(lists(list, nil, &asked), Options{Example: &corev1.Pod{}, Report: dropped.add})
	page, err := src.List(t.Context(), source.ListOptions{Version: "0", Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if asked.ResourceVersion != "0" || asked.Limit != 3 || asked.Continue != "" {
		t.Errorf("the lister was asked with %+v", asked)
	}
	if page.Version != "9" || page.Continue != "next" || page.Remaining != 4 || len(page.Items) != 3 {
		t.Errorf("the page is %+v", page)
	}
	if page.Items[0].Key != "default/a" || page.Items[1].Err == nil || page.Items[2].Version != "9" {
		t.Errorf("the items are %+v", page.Items)
	}
	if len(dropped) != 1 || !versions.Trusted() {
		t.Errorf("reported were %v, and the versions are trusted: %v; want one and true", dropped, versions.Trusted())
	}
	if _, err = src.List(t.Context(), source.ListOptions{Version: "0", Continue: "next"}); err != nil {
		t.Fatal(err)
	}
	if asked.ResourceVersion != "" || asked.Continue != "next" {
		t.Errorf("for the second page, the lister was asked with %+v; servers refuse a version there", asked)
	}
}

// TestSourceListFails: answers that are not lists.
func TestSourceListFails(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		list runtime.Object
		err  error
		want string
	}{
		{"an error", nil, broken, "broken"},
		{"nothing", nil, nil, "neither a list nor an error"},
		{"no list", pod("a", "1"), nil, "not a list"},
		{"a table", &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}}, nil, "Table"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src, _ := New(lists(tt.list, tt.err, nil), Options{})
			_, err := src.List(t.Context(), source.ListOptions{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want one with %q", err, tt.want)
			}
			if tt.err != nil && !errors.Is(err, tt.err) {
				t.Errorf("the error %v does not wrap that of the lister", err)
			}
		})
	}
}

// TestSourceListEnds: List returns when the context ends, even if the lister does not return. A
// panic of the lister becomes a panic of List.
func TestSourceListEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		src, _ := New(&fake{list: func(metav1.ListOptions) (runtime.Object, error) {
			<-release
			return nil, nil
		}}, Options{})
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		if _, err := src.List(ctx, source.ListOptions{}); !errors.Is(err, stopped) {
			t.Errorf("the error is %v, want the cause of the context's end", err)
		}
	})
	defer func() {
		if r := recover(); r != "broken" {
			t.Errorf("the caller panics with %v", r)
		}
	}()
	src, _ := New(&fake{list: func(metav1.ListOptions) (runtime.Object, error) { panic("broken") }}, Options{})
	if _, err := src.List(t.Context(), source.ListOptions{}); err == nil {
		t.Error("the list succeeded")
	}
}

// TestSourceTrust checks which lists end the trust in versions.
func TestSourceTrust(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version string
		objects []string
		trusted bool
	}{
		{"a server", "10", []string{"3", "10"}, true},
		{"no versions", "", []string{""}, false},
		{"an empty list without a version", "", nil, false},
		{"an object newer than its list", "10", []string{"11"}, false},
		{"an object without a version", "10", []string{""}, false},
		{"an object of a version that is no number", "10", []string{"x"}, false},
		{"two objects of one version", "10", []string{"3", "3"}, false},
		{"an object of version 0", "10", []string{"0"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: tt.version}}
			for _, v := range tt.objects {
				list.Items = append(list.Items, *pod("a", v))
			}
			src, versions := New(lists(list, nil, nil), ofPods)
			if _, err := src.List(t.Context(), source.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if versions.Trusted() != tt.trusted {
				t.Errorf("trusted is %v, want %v", versions.Trusted(), tt.trusted)
			}
		})
	}
}

// TestSourceWatchFails: watchers that return no watch.
func TestSourceWatchFails(t *testing.T) {
	broken := errors.New("broken")
	for want, err := range map[string]error{"broken": broken, "neither a watch nor an error": nil} {
		src, _ := New(&fake{watch: func(metav1.ListOptions) (watch.Interface, error) { return nil, err }}, Options{})
		if _, got := src.Watch(t.Context(), source.WatchOptions{}); got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("the error is %v, want one with %q", got, want)
		}
	}
}

// stubSource is a source of pods.
type stubSource struct{}

func (s stubSource) List(context.Context, source.ListOptions) (source.Page[*corev1.Pod], error) {
	wrong := source.Item[*corev1.Pod]{Key: "default/b", Err: errors.New("wrong")}
	return source.Page[*corev1.Pod]{Items: []source.Item[*corev1.Pod]{source.ItemOf(pod("a", "1")), wrong}, Version: "9", Continue: "next", Remaining: 3, Sharded: true}, nil
}

func (s stubSource) Watch(context.Context, source.WatchOptions) (source.Stream[*corev1.Pod], error) {
	return s, nil
}

func (s stubSource) Next() ([]source.Event[*corev1.Pod], error) {
	return []source.Event[*corev1.Pod]{
		{Type: source.Added, Item: source.ItemOf(pod("a", "1"))},
		{Type: source.Bookmark, Item: source.Item[*corev1.Pod]{Version: "3", Err: errors.New("no object")}},
		{Type: source.Modified, Unselected: true, Item: source.Item[*corev1.Pod]{Version: "4"}},
	}, nil
}

func (s stubSource) Close() error { return nil }

// TestUntyped: an untyped source returns the items of the typed source. The object of an item
// with an error is an untyped nil.
func TestUntyped(t *testing.T) {
	src := Untyped[*corev1.Pod](stubSource{}, nil)
	page, err := src.List(t.Context(), source.ListOptions{})
	if err != nil || page.Version != "9" || page.Continue != "next" || page.Remaining != 3 || !page.Sharded || len(page.Items) != 2 {
		t.Errorf("the page is %+v, %v", page, err)
	}
	if name := page.Items[0].Object.(*corev1.Pod).Name; name != "a" || page.Items[1].Object != nil || page.Items[1].Err == nil {
		t.Errorf("the items are %+v", page.Items)
	}
	stream, err := src.Watch(t.Context(), source.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the batch is used again
		events, err := stream.Next()
		if err != nil || len(events) != 3 || events[0].Key != "default/a" || events[1].Version != "3" || events[1].Object != nil {
			t.Errorf("the events are %+v, %v", events, err)
		}
		if e := events[2]; !e.Unselected || e.Version != "4" || e.Object != nil || events[0].Unselected {
			t.Errorf("the event of an object that is not selected is %+v", e)
		}
		types := []source.EventType{events[0].Type, events[1].Type, events[2].Type}
		if !slices.Equal(types, []source.EventType{source.Added, source.Bookmark, source.Modified}) {
			t.Errorf("the types are %v", types)
		}
	}
}
