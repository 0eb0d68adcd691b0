package dedup

import (
	"maps"
	"math"
	"strings"
	"unsafe"
)

// What JSON decodes to is a tree of maps and slices of any. A tree is shared like the
// values of Go types: as a whole, or by its parts where it differs from all others.

// asTree returns the map at v.
func asTree(v value) map[string]any { return *(*map[string]any)(unsafe.Pointer(&v.at)) }

// asList returns the slice at v.
func asList(v value) []any { return unsafe.Slice((*any)(v.at), v.n) }

const (
	sizeOfAny   = 16
	sizeOfEntry = 32 // of a map of strings to any
)

// tree hashes a map of a tree.
func (h *hasher) tree(v value) uint64 {
	m := asTree(v)
	h.size += sizeOfMap(len(m), sizeOfEntry)
	var sum uint64
	for key, x := range m {
		h.size += len(key)
		sum += h.mix(h.text(key), h.leaf(x))
	}
	return h.mix(sum, uint64(len(m)))
}

// leaf hashes a value in a tree. Numbers are compared by their bits, so that each is what
// it was.
func (h *hasher) leaf(x any) uint64 {
	switch x := x.(type) {
	case nil:
		return 10
	case string:
		h.size += sizeOfAny + len(x)
		return h.mix(h.text(x), 11)
	case bool:
		if x {
			return 12
		}
		return 13
	case int64:
		h.size += 8
		return h.mix(uint64(x), 14)
	case float64:
		h.size += 8
		return h.mix(math.Float64bits(x), 15)
	case map[string]any:
		return h.deeper(x == nil, 16, func() uint64 { return h.tree(value{mapAt(x), 1}) })
	case []any:
		return h.deeper(x == nil, 18, func() uint64 { return h.list(x) })
	}
	h.failed = true
	return 0
}

// deeper hashes what is in a value, unless that is nil or too deep.
func (h *hasher) deeper(isNil bool, kind uint64, content func() uint64) uint64 {
	if isNil {
		return kind
	}
	if h.left--; h.left < 0 || h.depth == maxDepth || h.failed {
		h.failed = true
		return 0
	}
	h.depth++
	x := content()
	h.depth--
	return h.mix(x, kind+1)
}

func (h *hasher) list(list []any) uint64 {
	h.size += sizeOfAny*len(list) + 24
	x := uint64(len(list))
	for i := range list {
		x = h.mix(x, h.leaf(list[i]))
	}
	return x
}

func equalTrees(a, b map[string]any) bool {
	if mapAt(a) == mapAt(b) {
		return true
	}
	if len(a) != len(b) {
		return false
	}
	for key, x := range a {
		if y, ok := b[key]; !ok || !equalLeaves(x, y) {
			return false
		}
	}
	return true
}

func equalLeaves(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && (a == nil) == (b == nil) && equalTrees(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && (a == nil) == (b == nil) && equalLists(a, b)
	}
	return false
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equalLeaves(a[i], b[i]) {
			return false
		}
	}
	return true
}

// treeNames is how many names of a tree are told apart: a name stands for the places in
// which it occurs, because it mostly means the same in all of them.
const treeNames = 256

// treeSteps makes the steps of the places in trees.
func (c *shareCompiler) treeSteps() {
	if c.plan.trees != nil {
		return
	}
	c.plan.trees = make([]step, 2*treeNames)
	maps, lists := c.shape(treeType), c.shape(listType)
	for i := range treeNames {
		c.plan.trees[i] = step{kind: stepTree, site: c.site(), inner: c.site(), shape: maps}
		c.plan.trees[treeNames+i] = step{kind: stepList, site: c.site(), inner: -1, shape: lists}
	}
}

// place returns the step for values of a kind under a name.
func (r *shareRun) place(kind stepKind, name string) *step {
	i := mix(unsafe.Slice(unsafe.StringData(name), len(name))) >> 56
	if kind == stepList {
		i += treeNames
	}
	return &r.plan.trees[i]
}

// node returns what is to be in the place of a value under a name, and whether that is
// another one than x. What is own has nothing of x in it that can be written to.
func (r *shareRun) node(x any, name string, own bool) (any, bool) {
	switch x := x.(type) {
	case string:
		shared, ok := r.text(r.place(stepTree, name).inner, x)
		switch {
		case ok && unsafe.StringData(shared) != unsafe.StringData(x):
			r.saved += len(x)
			return shared, true
		case !ok && own:
			return strings.Clone(x), true
		}
	case map[string]any:
		return r.branch(x, name, own)
	case []any:
		return r.list(x, name, own)
	}
	return x, false
}

// branch is node for a map.
func (r *shareRun) branch(m map[string]any, name string, own bool) (any, bool) {
	if m == nil || !own && (len(m) == 0 || r.depth == maxDepth || r.hash.left <= 0) {
		return m, false
	}
	if len(m) > 0 {
		if v, ok := r.whole(r.place(stepTree, name), value{mapAt(m), 1}); ok {
			return asTree(v), true
		}
	}
	if own {
		return r.ownBranch(m), true
	}
	return r.parts(m)
}

// parts returns a copy of a map with the parts in it that others have, if that is worth
// it, and otherwise the map.
func (r *shareRun) parts(m map[string]any) (map[string]any, bool) {
	r.depth++
	before := r.saved
	r.saved = 0
	r.walked += sizeOfMap(len(m), sizeOfEntry)
	var changed map[string]any
	for key, x := range m {
		if y, ok := r.node(x, key, false); ok {
			if changed == nil {
				changed = maps.Clone(m)
			}
			changed[key] = y
		}
	}
	r.depth--
	if changed == nil || r.saved*worth < sizeOfMap(len(m), sizeOfEntry) {
		r.saved = before
		return m, false
	}
	r.saved += before
	return changed, true
}

// ownBranch returns a copy of a map with keys and values of its own.
func (r *shareRun) ownBranch(m map[string]any) map[string]any {
	r.depth++
	keys := r.place(stepTree, "")
	own := make(map[string]any, len(m))
	for key, x := range m {
		own[r.ownText(keys.inner, key)], _ = r.node(x, key, true)
	}
	r.depth--
	return own
}

// list is node for a slice.
func (r *shareRun) list(list []any, name string, own bool) (any, bool) {
	if list == nil || !own && (len(list) == 0 || r.depth == maxDepth || r.hash.left <= 0) {
		return list, false
	}
	if len(list) > 0 {
		v := value{unsafe.Pointer(unsafe.SliceData(list)), len(list)}
		if other, ok := r.whole(r.place(stepList, name), v); ok {
			return unsafe.Slice((*any)(other.at), other.n), true
		}
	}
	if own {
		return r.ownList(list, name), true
	}
	r.depth++
	before := r.saved
	r.saved = 0
	var changed []any
	for i := range list {
		if y, ok := r.node(list[i], name, false); ok {
			if changed == nil {
				changed = append(make([]any, 0, len(list)), list...)
			}
			changed[i] = y
		}
	}
	r.depth--
	if changed == nil || r.saved*worth < sizeOfAny*len(list) {
		r.saved = before
		return list, false
	}
	r.saved += before
	return changed, true
}

func (r *shareRun) ownList(list []any, name string) []any {
	r.depth++
	own := make([]any, len(list))
	for i := range list {
		own[i], _ = r.node(list[i], name, true)
	}
	r.depth--
	return own
}

// ownTree returns a copy of a map or a slice of a tree.
func (r *shareRun) ownTree(s *step, v value) value {
	if s.kind == stepTree {
		return value{mapAt(r.ownBranch(asTree(v))), 1}
	}
	own := r.ownList(asList(v), "")
	return value{unsafe.Pointer(unsafe.SliceData(own)), len(own)}
}
