package listwatch

import (
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// Versions decides whether the resource versions of a source order its states. The zero value
// trusts them until a list or an event shows that they do not. The package comment has the rule.
type Versions struct {
	distrusted atomic.Bool
	fake       atomic.Bool
	cached     func(key string) (any, bool) // nil is an empty cache
	history    history
}

// LookIn sets the cache in which to look up states that the history has forgotten. It is
// called before the source is used. Objects without metadata count as missing.
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

// IsFake reports whether the source is a fake for certain: it declares it, or its versions are no
// numbers. Numbers out of order may also come from a server whose backup was restored.
func (v *Versions) IsFake() bool { return v.fake.Load() }

// declareFake ends the comparison of versions of a source that is a fake for certain.
func (v *Versions) declareFake() {
	v.fake.Store(true)
	v.distrust()
}

// distrust ends the comparison of versions for good.
func (v *Versions) distrust() { v.distrusted.Store(true) }

// uniqueAmong is the number of objects of a page that are compared with each other.
const uniqueAmong = 64

// checkPage ends the trust if a page of a list shows a fake. A source that is not trusted any more
// may yet turn out to be a fake for certain.
func (v *Versions) checkPage(page *source.Page[any]) {
	if v.IsFake() {
		return
	}
	seen := make(map[string]bool, min(len(page.Items), uniqueAmong))
	for i := range page.Items {
		version := page.Items[i].Version
		if page.Items[i].Err != nil {
			continue
		}
		order, ok := delta.CompareDecimal(version, page.Version)
		switch {
		case !ok:
			v.declareFake()
			return
		case order > 0, seen[version]:
			v.distrust()
		}
		if !v.Trusted() {
			continue
		}
		if i < uniqueAmong {
			seen[version] = true
		}
		if i >= len(page.Items)-maxStates/2 {
			v.history.add(stateOf(&page.Items[i], false))
		}
	}
}

// checkEvent ends the trust if an event of a watch shows a fake. before is the version of the
// previous event; for the first event, that of the watch. onlyDeletes reports whether all events
// of that version were deletes.
func (v *Versions) checkEvent(event *source.Event[any], before string, onlyDeletes bool) {
	order, ok := delta.CompareDecimal(event.Version, before)
	switch {
	case v.IsFake():
		return
	case !ok:
		v.declareFake()
		return
	case !v.Trusted():
		return
	case order > 0 || v.isRepeated(event):
	case order == 0 && onlyDeletes && event.Type == source.Deleted && !v.isLast(&event.Item):
	default:
		v.distrust()
		return
	}
	v.history.addEvent(event)
}

// isRepeated reports whether the source delivers a state again. If it is the last state of its
// object, the content must be equal, but in another pointer, because each answer of a server is
// decoded. The content of older states is not compared: it is not kept.
func (v *Versions) isRepeated(event *source.Event[any]) bool {
	s := stateOf(&event.Item, event.Type == source.Deleted)
	cached, obj := v.cachedState(s.key)
	switch {
	case s.uid == "" || cached != s && !v.history.has(s):
		return false
	case s.deleted || s.before(cached) || s.before(v.history.last(s.key)):
		return true
	}
	before := v.history.object(s)
	if before == nil && cached == s {
		before = obj
	}
	return !isSame(event.Object, before) && reflect.DeepEqual(event.Object, before)
}

// isSame reports whether both are the same pointer.
func isSame(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer && x.Pointer() == y.Pointer()
}

// isLast reports whether the version is that of the last known state of the object.
func (v *Versions) isLast(item *source.Item[any]) bool {
	cached, _ := v.cachedState(item.Key)
	return cached.version == item.Version || v.history.last(item.Key).version == item.Version
}

// cachedState returns the state of a key in the cache, with the object; the zero value for a
// key that is not cached.
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
