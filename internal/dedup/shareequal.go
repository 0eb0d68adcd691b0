package dedup

import "unsafe"

// equalParts reports whether two values that a step points to are the same. Both
// were hashed without a failure: what cannot be compared is not in them.
func equalParts(s *step, a, b value) bool {
	if a == b {
		return true
	}
	if a.at == nil || b.at == nil || a.n != b.n {
		return false
	}
	switch s.kind {
	case stepMap:
		return equalMaps(s, a, b)
	case stepTree:
		return equalTrees(asTree(a), asTree(b))
	case stepList:
		return equalLists(asList(a), asList(b))
	}
	l := s.elem
	if l.size == 1 && l.flat {
		return unsafe.String((*byte)(a.at), a.n) == unsafe.String((*byte)(b.at), b.n)
	}
	for i := range a.n {
		offset := uintptr(i) * l.size
		if !equalBlocks(l, unsafe.Add(a.at, offset), unsafe.Add(b.at, offset)) {
			return false
		}
	}
	return true
}

func equalBlocks(l *layout, a, b unsafe.Pointer) bool {
	for i := range l.steps {
		s := &l.steps[i]
		p, q := unsafe.Add(a, s.offset), unsafe.Add(b, s.offset)
		switch s.kind {
		case stepMemory:
			if !equalMemory(p, q, s.size) {
				return false
			}
		case stepText:
			if *(*string)(p) != *(*string)(q) {
				return false
			}
		case stepInterface:
			if *(*unsafe.Pointer)(p) != nil || *(*unsafe.Pointer)(q) != nil {
				return false
			}
		case stepQuantity:
			return false
		default:
			if !equalParts(s, s.load(p), s.load(q)) {
				return false
			}
		}
	}
	return true
}

func equalMemory(p, q unsafe.Pointer, n uintptr) bool {
	switch n {
	case 1:
		return *(*uint8)(p) == *(*uint8)(q)
	case 4:
		return *(*uint32)(p) == *(*uint32)(q)
	case 8:
		return *(*uint64)(p) == *(*uint64)(q)
	default:
		return unsafe.String((*byte)(p), n) == unsafe.String((*byte)(q), n)
	}
}
