package listwatch

import (
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// Versions decides whether the resource versions of a source order its states. The
// zero value trusts them until something shows that they do not. The package comment has
// the rule.
type Versions struct {
	distrusted atomic.Bool
	cached     func(key string) (any, bool) // nil is an empty cache
	recent     recentStates
}

// LookIn has states that the source does not remember looked up in a cache. It is called
// before the source is used. Objects without metadata count as missing.
func (v *Versions) LookIn(get func(key string) (obj any, ok bool)) { v.cached = get }

// Compare orders two versions as delta.CompareDecimal does; ok is false for all of
// them once they are not trusted.
func (v *Versions) Compare(a, b string) (order int, ok bool) {
	if v.distrusted.Load() {
		return 0, false
	}
	return delta.CompareDecimal(a, b)
}

// Trusted reports whether versions are compared.
func (v *Versions) Trusted() bool { return !v.distrusted.Load() }

// Distrust ends the comparing of versions for good.
func (v *Versions) Distrust() { v.distrusted.Store(true) }

// uniqueAmong is how many objects of a page are compared with each other.
const uniqueAmong = 64

// sawPage takes note of a page of a list.
func (v *Versions) sawPage(page *source.Page[any]) {
	if !v.Trusted() {
		return
	}
	seen := make(map[string]bool, min(len(page.Items), uniqueAmong))
	for i := range page.Items {
		version := page.Items[i].Version
		if page.Items[i].Err != nil {
			continue
		}
		order, ok := delta.CompareDecimal(version, page.Version)
		if !ok || order > 0 || version == "0" || seen[version] {
			v.Distrust()
			return
		}
		if i < uniqueAmong {
			seen[version] = true
		}
		if i >= len(page.Items)-mostStates/2 {
			v.recent.add(stateOf(&page.Items[i], false))
		}
	}
}

// sawEvent takes note of an event of a watch. before is the version of the one before it,
// or that at which the watch began, and deletes says that only deletes had that version.
func (v *Versions) sawEvent(event *source.Event[any], before string, deletes bool) {
	if !v.Trusted() {
		return
	}
	deleted := event.Type == source.Deleted
	order, ok := delta.CompareDecimal(event.Version, before)
	if !ok || order <= 0 && !v.repeats(event) && (order < 0 || !deleted || !deletes || v.reached(&event.Item)) {
		v.Distrust()
		return
	}
	v.recent.addEvent(event)
}

// repeats reports whether the source says a state again. The last state of an object is said
// again when its content is equal, but in one pointer: what a server says is decoded each
// time. Of an older state the content is not known any more.
func (v *Versions) repeats(event *source.Event[any]) bool {
	s := stateOf(&event.Item, event.Type == source.Deleted)
	cached, obj := v.cachedState(s.key)
	switch {
	case s.uid == "" || cached != s && !v.recent.has(s):
		return false
	case s.deleted || s.before(cached) || s.before(v.recent.last(s.key)):
		return true
	}
	before := v.recent.content(s)
	if before == nil && cached == s {
		before = obj
	}
	return !isSame(event.Object, before) && reflect.DeepEqual(event.Object, before)
}

func isSame(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer && x.Pointer() == y.Pointer()
}

// reached reports whether the version is that of the last state of the object, as far as that
// is known.
func (v *Versions) reached(item *source.Item[any]) bool {
	cached, _ := v.cachedState(item.Key)
	return cached.version == item.Version || v.recent.last(item.Key).version == item.Version
}

// cachedState returns the state of a key in the cache, or the zero value for an unknown key.
func (v *Versions) cachedState(key string) (s state, obj any) {
	if v.cached == nil {
		return state{}, nil
	}
	obj, ok := v.cached(key)
	if !ok {
		return state{}, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return state{}, nil
	}
	return state{key: key, uid: string(m.GetUID()), version: m.GetResourceVersion()}, obj
}
