package store

import "unsafe"

// Memory is an estimate of the size of a state, in bytes, without its objects.
type Memory struct {
	// Keys has the keys, and the hash table and the tree that find objects by them. An object that
	// is in an index adds 32 bytes to it.
	Keys int
	// Indexes has each index with its values, in the order of [Snapshot.Indexes].
	Indexes []int
}

// sampledElements is the number of elements of a list that are measured, up to twice as many for a
// short one.
const sampledElements = 4

// Memory returns an estimate from a few nodes of each tree. It takes some microseconds, whatever
// the size of the store.
func (s Snapshot[T]) Memory() Memory {
	if s.state == nil {
		return Memory{}
	}
	m := Memory{Keys: int(unsafe.Sizeof(*s.state)) + arraySize(s.state.byKey.slots)}
	if root := s.state.objects.root; root != nil {
		m.Keys += root.bytes(func(items []*item[T]) int { return sum(items, (*item[T]).bytes) })
	}
	for _, x := range s.state.indexes {
		bytes := 0
		if x.entries.root != nil {
			bytes = x.entries.root.bytes(bytesOfEntries[T])
		}
		m.Indexes = append(m.Indexes, bytes)
	}
	return m
}

// bytes estimates the memory of a node and the nodes below it. of measures the memory that entries
// refer to.
func (n *node[P, E]) bytes(of func([]E) int) int {
	return allocated(int(unsafe.Sizeof(*n))) + arraySize(n.entries) + of(n.entries) +
		arraySize(n.children) + sum(n.children, func(c *node[P, E]) int { return c.bytes(of) })
}

func (r *item[T]) bytes() int {
	bytes := allocated(int(unsafe.Sizeof(*r))) + allocated(len(r.key))
	if r.anchor != nil {
		bytes += allocated(int(unsafe.Sizeof(*r.anchor)))
	}
	return bytes
}

// bytesOfEntries measures the places of neighbouring entries, and each of their values once.
func bytesOfEntries[T any](entries []entry[T]) int {
	bytes := len(entries) * int(unsafe.Sizeof(place{}))
	for i, e := range entries {
		if i == 0 || unsafe.StringData(e.value) != unsafe.StringData(entries[i-1].value) {
			bytes += allocated(len(e.value))
		}
	}
	return bytes
}

// sum estimates the sum of a function over a list, from elements in the middle of equal parts.
func sum[X any](list []X, of func(X) int) int {
	total, n := 0, 0
	step := max(1, len(list)/sampledElements)
	for i := step / 2; i < len(list); i += step {
		total += of(list[i])
		n++
	}
	return total * len(list) / max(1, n)
}

func arraySize[X any](list []X) int {
	var x X
	return allocated(cap(list) * int(unsafe.Sizeof(x)))
}

// allocated returns about the memory of an allocation of a size: the first size classes of the
// runtime are 8 bytes apart, the others at least 16.
func allocated(size int) int {
	if size <= 32 {
		return (size + 7) &^ 7
	}
	return (size + 15) &^ 15
}
