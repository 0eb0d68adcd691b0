package dedup

import "github.com/tidings-go/tidings/internal/decode/wire"

// A pathNode is a path in the objects of a kind: a field of the object at its parent, or the
// elements of the array there. It has the fieldStats of the values there. Paths are known by
// their index; 0 is the parent of the kinds themselves.
type pathNode struct {
	name            string
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
	index map[pathName]int32
}

// A pathName is the name of a field and its parent.
type pathName struct {
	parent int32
	name   string
}

func (p *pathTree) init() {
	p.nodes = append(make([]pathNode, 0, leastPaths), pathNode{}, pathNode{})
	p.index = map[pathName]int32{}
}

// tidy forgets everything if there is too much of it. No path may be in use.
func (p *pathTree) tidy() {
	if len(p.nodes) >= maxPaths {
		p.init()
	}
}

// find returns the path of a field, or 0.
func (p *pathTree) find(parent int32, name []byte) int32 {
	return p.index[pathName{parent, string(name)}]
}

// add returns a new path for a field, or unknownPath if there is no room.
func (p *pathTree) add(parent int32, name string) int32 {
	if len(p.nodes) >= maxPaths {
		return unknownPath
	}
	at := int32(len(p.nodes))
	p.nodes = append(p.nodes, pathNode{name: name})
	p.index[pathName{parent, name}] = at
	return at
}

func (p *pathTree) root(kind string) int32 {
	if at := p.find(0, []byte(kind)); at != 0 {
		return at
	}
	return p.add(0, kind)
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
		p.nodes = append(p.nodes, pathNode{})
	}
	return p.nodes[at].elements
}

// name returns the name of a field in the object at a path, after the field at last, and the
// path of its value.
func (w *mapWorker) name(t *wire.Token, path, last int32) (string, int32) {
	content := w.content(t)
	if path == unknownPath {
		return w.keepText(t, content), unknownPath
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
	if at == 0 && len(content) <= maxName && len(content) > 0 &&
		w.table.seen.mark(w.table.hash(nameSpace, content), noTag, false) {
		at = w.paths.add(path, string(content))
	}
	if at <= unknownPath {
		return w.keepText(t, content), unknownPath
	}
	nodes = w.paths.nodes
	if last > unknownPath {
		nodes[last].next = at
	} else {
		nodes[path].first = at
	}
	return nodes[at].name, at
}
