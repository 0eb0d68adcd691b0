package factory_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// handler records one line for each notification.
type handler struct {
	t    *testing.T
	form form

	mu       sync.Mutex
	received []string
}

func (h *handler) add(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.received = append(h.received, line)
}

func (h *handler) OnAdd(obj any, initial bool) {
	h.add(map[bool]string{true: "initial "}[initial] + "add " + h.describe(obj))
}

func (h *handler) OnUpdate(from, to any) {
	h.add("update " + h.describe(from) + " to " + h.describe(to))
}

func (h *handler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		h.add("tombstone " + h.describe(tombstone.Obj))
		return
	}
	h.add("delete " + h.describe(obj))
}

func (h *handler) describe(obj any) string { return describe(h.t, h.form, obj) }

// describe returns the key and the color of an object, which must have the form.
func describe(t *testing.T, f form, obj any) string {
	got := typedForm
	switch obj.(type) {
	case *unstructured.Unstructured:
		got = unstructuredForm
	case *metav1.PartialObjectMetadata:
		got = metadataForm
	}
	o, err := meta.Accessor(obj)
	if got != f || err != nil {
		t.Errorf("got a %T: %v", obj, err)
		return "?"
	}
	return fmt.Sprintf("%s/%s %s", o.GetNamespace(), o.GetName(), o.GetLabels()["color"])
}

// check waits until the informer is idle, and compares the notifications since the last
// check, sorted if wanted is, because objects of one list come in any order.
func (h *handler) check(want ...string) {
	h.t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	received := h.received
	h.received = nil
	if slices.IsSorted(want) {
		slices.Sort(received)
	}
	if !slices.Equal(received, want) {
		h.t.Errorf("the handler received %q, want %q", received, want)
	}
}

// handle adds a handler to an informer.
func handle(t *testing.T, l library, informer cache.SharedIndexInformer) *handler {
	t.Helper()
	h := &handler{t: t, form: l.form}
	_, err := informer.AddEventHandler(h)
	must(t, err)
	return h
}

// TestTweak selects by label and by field. The watches of a fake ignore selectors.
func TestTweak(t *testing.T) {
	for name, tweak := range map[string]func(*metav1.ListOptions){
		"label": func(o *metav1.ListOptions) { o.LabelSelector = "color=red" },
		"field": func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=one" },
	} {
		t.Run(name, func(t *testing.T) {
			eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
				w.create(t, widget("a", "one", "red"))
				w.create(t, widget("a", "two", "blue"))
				f := l.factory(w.clients(t), settings{tweak: tweak})
				h := handle(t, l, f.ForResource(widgets).Informer())
				start(t, f)
				h.check("initial add a/one red")
				w.create(t, widget("a", "three", "blue"))
				h.check()
				w.create(t, widget("b", "one", "red"))
				h.check("add b/one red")
				for _, request := range w.server.Requests() {
					if request.Query.Get(name+"Selector") == "" {
						t.Errorf("%s asks for %v", request.Verb, request.Query)
					}
				}
			})
		})
	}
}

// TestTweakSeesEachCall: the tweak is called for a list and for a watch, each time with new
// options.
func TestTweakSeesEachCall(t *testing.T) {
	eachWithFakes(t, func(t *testing.T, l library, w *fakeWorld) {
		var options []metav1.ListOptions
		started(t, l, w, settings{namespace: "a", tweak: func(o *metav1.ListOptions) {
			options = append(options, *o)
			o.LabelSelector += "color=red"
		}})
		if len(options) != 2 || options[0].Watch || !options[1].AllowWatchBookmarks {
			t.Errorf("tweakListOptions is called for %+v, want a list and a watch", options)
		}
		for _, o := range options {
			if o.LabelSelector != "" {
				t.Errorf("tweakListOptions gets options that it has changed before: %+v", o)
			}
		}
	})
}

// paint is a transform.
func paint(obj any) (any, error) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	o.SetLabels(map[string]string{"color": "green"})
	return obj, nil
}
