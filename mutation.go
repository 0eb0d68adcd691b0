package tidings

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
)

// Mutation is a write to an object that informers share.
type Mutation struct {
	// Informer is the name of the informer that holds the object.
	Informer string
	// Key is the key of the object.
	Key string
	// Fields are the paths of the fields that were written.
	Fields []string
	// Handlers are the handlers whose calls were running when it was found, sorted:
	// one of them made the write, unless another goroutine did. None means that it
	// was found between calls.
	Handlers []string
}

// Error names the object, the fields that were written, and the writer as far as it is known.
func (m Mutation) Error() string {
	by := "someone (no handler was running)"
	if len(m.Handlers) > 0 {
		by = "handler " + strings.Join(m.Handlers, " or ")
	}
	return fmt.Sprintf("tidings: informer %s: %s changed the cached object %s at %s: "+
		"cached objects are shared, change a DeepCopy",
		m.Informer, by, m.Key, strings.Join(m.Fields, ", "))
}

// mutationSweep is the period of the comparison of all objects.
const mutationSweep = time.Second

// mutationDetector keeps a copy of every cached object, and of those that were
// replaced since the last sweep but one, and compares.
type mutationDetector[T Object] struct {
	informer func() string
	report   func(Mutation)

	mu      sync.Mutex                // guards the rest, including every copy
	copies  map[string]*pristine[T]   // by key
	running map[string]int            // calls of handlers, by name
	retired map[string][]*pristine[T] // by key: replaced or deleted, as handlers may hold them
}

// pristine is an object beside its state when it was cached.
type pristine[T Object] struct {
	key         string
	object, was T
	sweeps      int // since it was retired
}

func newMutationDetector[T Object](report func(Mutation)) *mutationDetector[T] {
	if report == nil {
		report = func(m Mutation) { panic(m) }
	}
	return &mutationDetector[T]{
		report: report, copies: make(map[string]*pristine[T]),
		running: make(map[string]int), retired: make(map[string][]*pristine[T]),
	}
}

func (d *mutationDetector[T]) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.copies)
	d.retired = nil
}

func (d *mutationDetector[T]) observe(changes []change.Change[T]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range changes {
		c := &changes[i]
		key := c.Key
		if before, ok := d.copies[key]; ok {
			d.retired[key] = append(d.retired[key], before)
			delete(d.copies, key)
		}
		if c.Tombstone {
			continue // it has the object that was cached
		}
		p := &pristine[T]{key: key, object: c.New, was: copyOf(c.New)}
		if c.Type == change.Deleted {
			d.retired[key] = append(d.retired[key], p)
		} else {
			d.copies[key] = p
		}
	}
}

// run compares everything once per sweep until ctx ends.
func (d *mutationDetector[T]) run(ctx context.Context) {
	ticker := time.NewTicker(mutationSweep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			d.sweep()
			return
		case <-ticker.C:
			d.sweep()
		}
	}
}

func (d *mutationDetector[T]) sweep() {
	d.mu.Lock()
	var found []Mutation
	for _, p := range d.copies {
		found = d.compareLocked(p, found)
	}
	for key, all := range d.retired {
		kept := slices.DeleteFunc(all, func(p *pristine[T]) bool {
			found = d.compareLocked(p, found)
			p.sweeps++
			return p.sweeps == 2
		})
		if d.retired[key] = kept; len(kept) == 0 {
			delete(d.retired, key)
		}
	}
	d.mu.Unlock()
	for _, m := range found {
		d.report(m)
	}
}

// compareLocked appends a mutation if the object differs from its copy. From then on it compares
// with the new state, so that one write is reported once.
func (d *mutationDetector[T]) compareLocked(p *pristine[T], found []Mutation) []Mutation {
	if same(p.object, p.was) {
		return found
	}
	m := Mutation{Informer: d.informer(), Key: p.key, Handlers: slices.Sorted(maps.Keys(d.running))}
	for _, change := range fielddiff.Diff(p.was, p.object) {
		m.Fields = append(m.Fields, change.Path)
	}
	p.was = copyOf(p.object)
	return append(found, m)
}

// same reports whether two objects are equal as Kubernetes compares them, or field by field
// where a type of the program's own has fields that cannot be compared so.
func same[T Object](a, b T) (equal bool) {
	defer func() {
		if recover() != nil {
			equal = reflect.DeepEqual(a, b)
		}
	}()
	return equality.Semantic.DeepEqual(a, b)
}

// copyOf copies an object, also one without a DeepCopyObject, or whose DeepCopyObject panics: an
// Unstructured does so for values that a program puts into its maps and that JSON does not have, such
// as an int.
func copyOf[T Object](obj T) (copied T) {
	deep, ok := any(obj).(runtime.Object)
	if !ok {
		return copyValue(reflect.ValueOf(obj)).Interface().(T)
	}
	defer func() {
		if recover() != nil {
			copied = copyValue(reflect.ValueOf(obj)).Interface().(T)
		}
	}()
	return deep.DeepCopyObject().(T)
}

// copyValue copies a value and the values that it leads to, but for the unexported fields of
// structs.
func copyValue(v reflect.Value) reflect.Value {
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			break
		}
		inner := copyValue(v.Elem())
		if v.Kind() == reflect.Interface {
			copied.Set(inner)
			break
		}
		copied.Set(reflect.New(inner.Type()))
		copied.Elem().Set(inner)
	case reflect.Map:
		if v.IsNil() {
			break
		}
		copied.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for _, key := range v.MapKeys() {
			copied.SetMapIndex(key, copyValue(v.MapIndex(key)))
		}
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		copied.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			copied.Index(i).Set(copyValue(v.Index(i)))
		}
	case reflect.Struct:
		copyFields(copied, v)
	}
	return copied
}

// copyFields copies the values that the fields of a struct lead to. An embedded struct may have
// exported fields without being exported itself.
func copyFields(to, from reflect.Value) {
	for f := range from.Type().Fields() {
		i := f.Index[0]
		switch {
		case f.IsExported():
			to.Field(i).Set(copyValue(from.Field(i)))
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			copyFields(to.Field(i), from.Field(i))
		}
	}
}

// watchHandler compares the objects of a notification after the handler's call.
func (d *mutationDetector[T]) watchHandler(
	name string, deliver func(change.Change[T]),
) func(change.Change[T]) {
	return func(n change.Change[T]) {
		d.mu.Lock()
		d.running[name]++
		d.mu.Unlock()
		defer d.returned(name, n.Key)
		deliver(n)
	}
}

// returned compares the states of the key of a call, while the handler still counts as
// running.
func (d *mutationDetector[T]) returned(name, key string) {
	d.mu.Lock()
	var found []Mutation
	if p, ok := d.copies[key]; ok {
		found = d.compareLocked(p, found)
	}
	for _, p := range d.retired[key] {
		found = d.compareLocked(p, found)
	}
	if d.running[name]--; d.running[name] == 0 {
		delete(d.running, name)
	}
	d.mu.Unlock()
	for _, m := range found {
		d.report(m)
	}
}
