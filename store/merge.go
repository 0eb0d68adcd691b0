package store

import "strings"

// run is the walk over the entries of one value of an index.
type run[T any] struct {
	index  Index[T]
	value  string
	cursor cursor[position, entry[T]]
	item   *item[T] // where the walk stands
}

// at takes the entry where the cursor is. It returns false when it is past the value.
func (r *run[T]) at(e entry[T], ok bool) bool {
	if !ok || e.value != r.value {
		return false
	}
	r.item = r.index.state.at(e.anchor)
	return strings.HasPrefix(r.item.key, r.index.prefix)
}

// merge yields the items that stand in an index under any of the values, each once,
// ascending by key.
func merge[T any](x Index[T], values []string, yield func(*item[T]) bool) {
	all := make([]run[T], len(values))
	runs := make(runHeap[T], 0, len(values))
	for i, value := range values {
		r := &all[i]
		r.index, r.value = x, value
		if r.at(r.cursor.seek(x.entries, x.first(value))) {
			runs = append(runs, r)
		}
	}
	for i := len(runs)/2 - 1; i >= 0; i-- {
		runs.sink(i)
	}
	var last *item[T]
	for len(runs) > 0 {
		r := runs[0]
		if r.item != last { // equal keys of one state are one item
			if last = r.item; !yield(last) {
				return
			}
		}
		if !r.at(r.cursor.step()) {
			runs[0] = runs[len(runs)-1]
			runs = runs[:len(runs)-1]
		}
		runs.sink(0)
	}
}

// runHeap has the run with the least key first.
type runHeap[T any] []*run[T]

// sink restores the order of a heap in which run i may be too far in front.
func (h runHeap[T]) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].item.key < h[least].item.key {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
