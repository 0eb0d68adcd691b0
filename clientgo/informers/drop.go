package informers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidings-go/tidings/internal/fieldpath"
)

// WithDrop leaves fields of the metadata out of the objects of all the factory's own
// informers, as if they had never been set; WithDropFor does so for the fields of one type:
//
//	informers.WithDrop("metadata.managedFields")
//	informers.WithDropFor[*corev1.Pod]("spec.containers.env", "status.conditions")
//
// A path names fields as JSON does, joined by dots. It goes through lists and ends at a
// field of any type, which is left out whole; it cannot go into a map, nor leave out what
// objects are told apart by. Where both options are used, or one several times, the paths
// add up.
//
// Where informers read through the REST client of a clientset, the bytes of such a field
// are not even decoded. What another client has decoded is cleared in its objects, before
// any transform. Informers that a caller's function makes (see InformerFor) are left as they
// are, except those of ForGroup with a Config.
//
// Do not give an object of such an informer to an Update: the server takes a field that is
// not there as one to be removed. Use a Patch, or read the object anew.
//
// It panics if a path is wrong: paths are fixed when the program is compiled, so that any
// run of that line shows the mistake.
func WithDrop(paths ...string) SharedInformerOption {
	drop := parseDrop("WithDrop", paths)
	for _, path := range drop.Paths() {
		if !strings.HasPrefix(path, "metadata.") {
			panic(fmt.Sprintf("informers.WithDrop: not every type has %q: name a field of the metadata, as in \"metadata.managedFields\", or use WithDropFor", path))
		}
	}
	if err := drop.CheckField("metadata", reflect.TypeFor[metav1.ObjectMeta]()); err != nil {
		panic(fmt.Sprintf("informers.WithDrop: %v", err))
	}
	return func(f *factory) { f.drop.add(nil, paths) }
}

// WithDropFor is WithDrop for the informer of one type, which may have any fields. The type
// may be that of a custom resource, for ForGroup with a Config.
func WithDropFor[T Object](paths ...string) SharedInformerOption {
	t := reflect.TypeFor[T]()
	if err := parseDrop("WithDropFor", paths).Check(t); err != nil {
		panic(fmt.Sprintf("informers.WithDropFor[%v]: %v", t, err))
	}
	return func(f *factory) { f.drop.add(t, paths) }
}

func parseDrop(option string, paths []string) fieldpath.Tree {
	drop, err := fieldpath.Parse(paths)
	if err != nil {
		panic(fmt.Sprintf("informers.%s: %v", option, err))
	}
	return drop
}

// drops has the paths that are left out, by type; nil is every type. The zero value is
// ready. It does not change once the factory is made.
type drops map[reflect.Type][]string

func (d *drops) add(t reflect.Type, paths []string) {
	if *d == nil {
		*d = drops{}
	}
	(*d)[t] = append((*d)[t], paths...)
}

// of returns what is left out of objects of the type of obj.
func (d drops) of(obj runtime.Object) []string {
	return slices.Concat(d[nil], d[reflect.TypeOf(obj)])
}

// clearerOf returns what clears the fields of paths, which the options have checked, in
// objects of the type of example; nil if there are none.
func clearerOf(example runtime.Object, paths []string) *fieldpath.Clearer {
	return fieldpath.NewClearer(parseDrop("WithDropFor", paths), reflect.TypeOf(example))
}

// clearing returns a listWatcher whose objects come with some fields cleared. They are what
// the client has decoded: nobody else has them.
func clearing(lw listWatcher, clearer *fieldpath.Clearer) listWatcher {
	if clearer == nil {
		return lw
	}
	return clearingListWatcher{lw, clearer}
}

type clearingListWatcher struct {
	listWatcher
	clearer *fieldpath.Clearer
}

func (w clearingListWatcher) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := w.listWatcher.list(ctx, o)
	if err != nil {
		return nil, err
	}
	return list, meta.EachListItem(list, func(obj runtime.Object) error {
		w.clearer.Clear(obj)
		return nil
	})
}

func (w clearingListWatcher) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	from, err := w.listWatcher.watch(ctx, o)
	if err != nil {
		return nil, err
	}
	cleared := &clearingWatch{from: from, clearer: w.clearer, events: make(chan watch.Event), done: make(chan struct{})}
	go cleared.run()
	return cleared, nil
}

// clearingWatch passes events on. Its goroutine ends with the watch that they come from,
// or when it is stopped.
type clearingWatch struct {
	from    watch.Interface
	clearer *fieldpath.Clearer
	events  chan watch.Event
	done    chan struct{}
	stop    sync.Once
}

func (w *clearingWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *clearingWatch) Stop() {
	w.stop.Do(func() {
		close(w.done)
		w.from.Stop()
	})
}

func (w *clearingWatch) run() {
	defer close(w.events)
	for event := range w.from.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			w.clearer.Clear(event.Object)
		}
		select {
		case w.events <- event:
		case <-w.done:
			return
		}
	}
}
