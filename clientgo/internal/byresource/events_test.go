package byresource_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// recorder writes down what a handler is told.
type recorder struct {
	t    *testing.T
	form form

	mu   sync.Mutex
	told []string
}

func (r *recorder) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, what)
}

// take waits until nothing moves any more, and returns what was told since it was asked
// before.
func (r *recorder) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told
	r.told = nil
	return told
}

func (r *recorder) OnAdd(obj any, initial bool) {
	what := "add"
	if initial {
		what = "initial add"
	}
	r.note(what + " " + r.describe(obj))
}

func (r *recorder) OnUpdate(from, to any) {
	r.note("update " + r.describe(from) + " to " + r.describe(to))
}

func (r *recorder) OnDelete(obj any) {
	what := "delete"
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		what = "tombstone"
		obj = tombstone.Obj
	}
	r.note(what + " " + r.describe(obj))
}

func (r *recorder) describe(obj any) string { return describe(r.t, r.form, obj) }

// describe is the key and the color of an object, which must have the form.
func describe(t *testing.T, f form, obj any) string {
	ok := false
	switch f {
	case unstructuredForm:
		_, ok = obj.(*unstructured.Unstructured)
	case metadataForm:
		_, ok = obj.(*metav1.PartialObjectMetadata)
	}
	if !ok {
		t.Errorf("got a %T", obj)
		return "?"
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		t.Error(err)
		return "?"
	}
	return fmt.Sprintf("%s/%s %s", o.GetNamespace(), o.GetName(), o.GetLabels()["color"])
}

// check compares what was told with what should have been.
func (r *recorder) check(want ...string) {
	r.t.Helper()
	if told := r.take(); !slices.Equal(told, want) {
		r.t.Errorf("the handler was told %q, want %q", told, want)
	}
}

// checkSorted is check where objects of one list come in any order.
func (r *recorder) checkSorted(want ...string) {
	r.t.Helper()
	told := r.take()
	slices.Sort(told)
	if !slices.Equal(told, want) {
		r.t.Errorf("the handler was told %q in some order, want %q", told, want)
	}
}

func record(t *testing.T, l library, informer cache.SharedIndexInformer) *recorder {
	t.Helper()
	r := &recorder{t: t, form: l.form}
	if _, err := informer.AddEventHandler(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEvents adds, updates and deletes an object of a resource that no scheme knows.
func TestEvents(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widgets, widget("a", "one", "red"))
		f := l.factory(w.clients(t), 0)
		informer := f.ForResource(widgets).Informer()
		early := record(t, l, informer)
		start(t, f)
		early.check("initial add a/one red")
		w.create(t, widgets, widget("b", "two", "red"))
		early.check("add b/two red")
		w.update(t, widgets, widget("b", "two", "blue"))
		early.check("update b/two red to b/two blue")
		late := record(t, l, informer)
		late.checkSorted("initial add a/one red", "initial add b/two blue")
		w.delete(t, widgets, "a", "one")
		early.check("delete a/one red")
		late.check("delete a/one red")
	})
}

// TestNamespace follows one namespace.
func TestNamespace(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widgets, widget("a", "one", "red"))
		w.create(t, widgets, widget("b", "one", "red"))
		f := l.filtered(w.clients(t), 0, "b", nil)
		r := record(t, l, f.ForResource(widgets).Informer())
		start(t, f)
		r.check("initial add b/one red")
		w.create(t, widgets, widget("a", "two", "red"))
		r.check()
		w.create(t, widgets, widget("b", "two", "red"))
		r.check("add b/two red")
		w.delete(t, widgets, "a", "one")
		r.check()
	})
}

// TestTweak selects by label and by field. A fake's watches ignore selectors, so that
// this asks a server.
func TestTweak(t *testing.T) {
	for name, tweak := range map[string]func(*metav1.ListOptions){
		"label": func(o *metav1.ListOptions) { o.LabelSelector = "color=red" },
		"field": func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=one" },
	} {
		t.Run(name, func(t *testing.T) {
			eachWithServer(t, func(t *testing.T, l library) {
				w := newServer(t)
				w.create(t, widgets, widget("a", "one", "red"))
				w.create(t, widgets, widget("a", "two", "blue"))
				f := l.filtered(w.clients(t), 0, metav1.NamespaceAll, tweak)
				r := record(t, l, f.ForResource(widgets).Informer())
				start(t, f)
				r.check("initial add a/one red")
				w.create(t, widgets, widget("a", "three", "blue"))
				r.check()
				w.create(t, widgets, widget("b", "one", "red"))
				r.check("add b/one red")
				for _, request := range w.server.Requests() {
					if request.Query.Get(name+"Selector") == "" {
						t.Errorf("%s asks for %v", request.Verb, request.Query)
					}
				}
			})
		})
	}
}

// TestTweakSeesEachCall counts the calls: one for each list and each watch, each with
// options of its own.
func TestTweakSeesEachCall(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l library) {
		w := newFakes(t)
		var options []metav1.ListOptions
		f := l.filtered(w.clients(t), 0, "a", func(o *metav1.ListOptions) {
			options = append(options, *o)
			o.LabelSelector += "color=red"
		})
		f.ForResource(widgets)
		start(t, f)
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

// TestResync has the period of the factory, and of a handler of its own.
func TestResync(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widgets, widget("a", "one", "red"))
		f := l.factory(w.clients(t), time.Minute)
		informer := f.ForResource(widgets).Informer()
		r := record(t, l, informer)
		never := &recorder{t: t, form: l.form}
		if _, err := informer.AddEventHandlerWithResyncPeriod(never, 0); err != nil {
			t.Fatal(err)
		}
		start(t, f)
		r.check("initial add a/one red")
		never.check("initial add a/one red")
		time.Sleep(150 * time.Second)
		r.check("update a/one red to a/one red", "update a/one red to a/one red")
		never.check()
	})
}

// TestSetTransform sets one on an informer before it runs: handlers and store have what
// it returns, and a running informer refuses another.
func TestSetTransform(t *testing.T) {
	paint := func(obj any) (any, error) {
		o, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		o.SetLabels(map[string]string{"color": "green"})
		return obj, nil
	}
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widgets, widget("a", "one", "red"))
		f := l.factory(w.clients(t), 0)
		informer := f.ForResource(widgets).Informer()
		if err := informer.SetTransform(paint); err != nil {
			t.Fatal(err)
		}
		r := record(t, l, informer)
		start(t, f)
		r.check("initial add a/one green")
		w.create(t, widgets, widget("b", "two", "red"))
		r.check("add b/two green")
		cached, ok, err := informer.GetStore().GetByKey("b/two")
		if err != nil || !ok || r.describe(cached) != "b/two green" {
			t.Errorf("the store has %v (%v), want it as the transform leaves it", cached, err)
		}
		if err := informer.SetTransform(paint); err == nil {
			t.Error("a running informer takes a transform")
		}
	})
}

// TestDeletedWhileDisconnected deletes and creates objects while nobody is connected and
// has the server forget how: what is gone is told as a tombstone with the last state.
func TestDeletedWhileDisconnected(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library) {
		w := newServer(t)
		w.create(t, widgets, widget("a", "one", "red"))
		w.create(t, widgets, widget("a", "two", "red"))
		f := l.factory(w.clients(t), 0)
		informer := f.ForResource(widgets).Informer()
		r := record(t, l, informer)
		start(t, f)
		r.checkSorted("initial add a/one red", "initial add a/two red")
		w.server.SetAvailable(false)
		synctest.Wait()
		w.update(t, widgets, widget("a", "one", "blue")) // nobody sees this state
		w.delete(t, widgets, "a", "one")
		w.create(t, widgets, widget("b", "three", "red"))
		w.server.Compact()
		w.server.SetAvailable(true)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		// What the list brings again is told of too, unchanged as it is.
		r.checkSorted("add b/three red", "tombstone a/one red", "update a/two red to a/two red")
		if got := informer.GetStore().ListKeys(); len(got) != 2 {
			t.Errorf("the store has %v, want a/two and b/three", got)
		}
	})
}

// TestResourceComesLater asks for a custom resource before the server has it.
func TestResourceComesLater(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library) {
		w := newServer(t)
		w.server.RemoveResource(widgets)
		f := l.factory(w.clients(t), 0)
		informer := f.ForResource(widgets).Informer()
		r := record(t, l, informer)
		start(t, f)
		time.Sleep(time.Minute)
		synctest.Wait()
		if informer.HasSynced() {
			t.Error("the informer says that it is synced, without its resource")
		}
		w.server.RestoreResource(widgets)
		w.create(t, widgets, widget("a", "one", "red"))
		time.Sleep(5 * time.Minute)
		r.check("initial add a/one red")
		if !informer.HasSynced() {
			t.Error("the informer is not synced, although its resource is there")
		}
	})
}
