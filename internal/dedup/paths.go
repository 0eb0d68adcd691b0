package dedup

import "github.com/tidings-go/tidings/internal/wire"

// A pathNode is a path in the objects of a kind: a field of the object at its parent, or the
// elements of the array there. It has the fieldStats of the values there. Paths are known by
// their index; 0 is the parent of the kinds themselves.
type pathNode struct {
	name            string
	parent          int32
	first           int32 // the field that came first last time
	next            int32 // the field that came after this one last time
	elements        int32 // the path of the elements
	strings, nested fieldStats
}

// unknownPath is the path of all fields whose names are not remembered.
const unknownPath = 1

const (
	leastPaths = 1 << 6
	maxPaths   = 1 << 14 // of a worker
	maxName    = 128     // bytes of a name that is remembered
)

// The key spaces of JSON of which nothing is left out, and of the names of fields.
var wholeSpace, nameSpace = &keySpace{0x6a09e667f3bcc908}, &keySpace{0xbb67ae8584caa73b}

// A pathTree is a tree of paths. When it is full, it forgets all.
type pathTree struct {
	nodes []pathNode
	index []int32 // open addressing by parent and name; 0 is free
}

func (p *pathTree) init() {
	p.nodes = append(make([]pathNode, 0, leastPaths), pathNode{}, pathNode{})
	p.index = make([]int32, 2*leastPaths)
}

// tidy forgets everything if there is too much of it. No path may be in use.
func (p *pathTree) tidy() {
	if len(p.nodes) >= maxPaths {
		p.init()
	}
}

// slotOf returns where to begin to look for a name.
func slotOf(parent int32, m uint64) uint64 {
	return (m ^ uint64(parent)*0x9e3779b97f4a7c15) >> 20
}

// find returns the path of a field, or 0.
func (p *pathTree) find(parent int32, name []byte) int32 {
	mask := uint64(len(p.index) - 1)
	begin := slotOf(parent, mix(name))
	for k := range uint64(window) {
		at := p.index[(begin+k)&mask]
		if at == 0 {
			return 0
		}
		if have := &p.nodes[at]; have.parent == parent && have.name == string(name) {
			return at
		}
	}
	return 0
}

// add returns a new path for a field, or 0 if there is no room where it is looked for.
func (p *pathTree) add(parent int32, name string) int32 {
	if len(p.nodes) >= maxPaths {
		return 0
	}
	if 2*len(p.nodes) > len(p.index) { // a path that finds no room in the new index is lost
		p.index = make([]int32, 2*len(p.index))
		for at := range p.nodes {
			if at > unknownPath && p.nodes[at].name != "" {
				p.enter(int32(at))
			}
		}
	}
	at := int32(len(p.nodes))
	p.nodes = append(p.nodes, pathNode{name: name, parent: parent})
	if !p.enter(at) {
		p.nodes = p.nodes[:at]
		return 0
	}
	return at
}

// enter enters a path into the index.
func (p *pathTree) enter(at int32) bool {
	mask := uint64(len(p.index) - 1)
	have := &p.nodes[at]
	begin := slotOf(have.parent, mix([]byte(have.name)))
	for k := range uint64(window) {
		if slot := &p.index[(begin+k)&mask]; *slot == 0 {
			*slot = at
			return true
		}
	}
	return false
}

// root returns the path of the objects of a kind.
func (p *pathTree) root(kind string) int32 {
	at := p.find(0, []byte(kind))
	if at == 0 {
		at = p.add(0, kind)
	}
	if at == 0 {
		return unknownPath
	}
	return at
}

// elementsOf returns the path of the elements of the array at a path.
func (p *pathTree) elementsOf(at int32) int32 {
	if at == unknownPath {
		return unknownPath
	}
	if p.nodes[at].elements == 0 {
		if len(p.nodes) >= maxPaths {
			return unknownPath
		}
		p.nodes[at].elements = int32(len(p.nodes))
		p.nodes = append(p.nodes, pathNode{parent: at})
	}
	return p.nodes[at].elements
}

// name returns the name of a field in the object at a path, after the field at last, and the
// path of its value.
func (w *mapWorker) name(t *wire.Token, path, last int32) (string, int32) {
	content := w.content(t)
	if path == unknownPath {
		return w.keepString(t, content), unknownPath
	}
	nodes := w.paths.nodes
	guess := nodes[path].first
	if last > unknownPath {
		guess = nodes[last].next
	}
	if have := &nodes[guess]; guess != 0 && have.name == string(content) {
		return have.name, guess
	}
	at := w.paths.find(path, content)
	if at == 0 {
		known := len(content) <= maxName && len(content) > 0 &&
			w.table.seen.mark(w.table.hash(nameSpace, content), noTag, false)
		if known {
			at = w.paths.add(path, string(content))
		}
		if at == 0 {
			return w.keepString(t, content), unknownPath
		}
	}
	nodes = w.paths.nodes
	if last > unknownPath {
		nodes[last].next = at
	} else {
		nodes[path].first = at
	}
	return nodes[at].name, at
}
