package dedup

// A place is where values stand in the objects of a kind: the field of a name in the
// object at another place, or the elements of the array there. It has the sites for
// what stands there. Places are known by their index; 0 is the one from which
// those of the kinds' roots go out.
type place struct {
	name           string
	parent         int32
	first          int32 // the field that came first last time
	next           int32 // the field that came after this one last time
	elements       int32 // the place of the elements
	texts, subtree site
}

// noPlace is where values stand whose names are not remembered. All of a run are one
// place.
const noPlace = 1

const (
	// mostPlaces bounds the places of a run, mostName the length of their names.
	mostPlaces  = 1 << 14
	mostName    = 128
	leastPlaces = 1 << 6
)

// places is a tree of places. What it has learned it forgets when it is full.
type places struct {
	all   []place
	index []int32 // open addressing by parent and name; 0 is free
}

func (p *places) start() {
	p.all = append(make([]place, 0, leastPlaces), place{}, place{})
	p.index = make([]int32, 2*leastPlaces)
}

// slotOf returns where to begin to look for a name.
func (p *places) slotOf(parent int32, m uint64) uint64 {
	return (m ^ uint64(parent)*0x9e3779b97f4a7c15) >> 20
}

// find returns the place of a field, or 0.
func (p *places) find(parent int32, m uint64, name []byte) int32 {
	mask := uint64(len(p.index) - 1)
	begin := p.slotOf(parent, m)
	for k := range uint64(window) {
		at := p.index[(begin+k)&mask]
		if at == 0 {
			return 0
		}
		if have := &p.all[at]; have.parent == parent && have.name == string(name) {
			return at
		}
	}
	return 0
}

// add returns a new place for a field, or 0 if there is no room near where it is
// looked for.
func (p *places) add(parent int32, name string) int32 {
	if len(p.all) >= mostPlaces {
		return 0
	}
	if 2*len(p.all) > len(p.index) {
		p.grow()
	}
	at := int32(len(p.all))
	p.all = append(p.all, place{name: name, parent: parent})
	if !p.enter(at) {
		p.all = p.all[:at]
		return 0
	}
	return at
}

// enter enters a place into the index.
func (p *places) enter(at int32) bool {
	mask := uint64(len(p.index) - 1)
	have := &p.all[at]
	begin := p.slotOf(have.parent, mix([]byte(have.name)))
	for k := range uint64(window) {
		if slot := &p.index[(begin+k)&mask]; *slot == 0 {
			*slot = at
			return true
		}
	}
	return false
}

// grow makes the index larger. A place that finds no room there is lost.
func (p *places) grow() {
	p.index = make([]int32, 2*len(p.index))
	for at := range p.all {
		if at > noPlace && p.all[at].name != "" {
			p.enter(int32(at))
		}
	}
}

// elementsOf returns the place of the elements of the array at a place.
func (p *places) elementsOf(at int32) int32 {
	if at == noPlace {
		return noPlace
	}
	if p.all[at].elements == 0 {
		if len(p.all) >= mostPlaces {
			return noPlace
		}
		p.all[at].elements = int32(len(p.all))
		p.all = append(p.all, place{parent: at})
	}
	return p.all[at].elements
}

// tidy forgets everything if there is too much of it. No place may be in use.
func (p *places) tidy() {
	if len(p.all) >= mostPlaces {
		p.start()
	}
}
