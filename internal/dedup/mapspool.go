package dedup

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/tidings-go/tidings/internal/fieldpath"
)

// mapRuns are what a table has for decoders of maps. The zero value is ready.
type mapRuns struct {
	idle   pool[*mapRun]
	mu     sync.Mutex        // guards what is below; it comes after no other lock and before none
	shapes map[string]*shape // by the fields that are left out
}

// wholeShape is the shape of JSON of which nothing is left out.
var wholeShape = &shape{salt: 0x6a09e667f3bcc908}

// nameShape is the shape of the names of fields.
var nameShape = &shape{salt: 0xbb67ae8584caa73b}

// take returns a run that nobody else uses.
func (p *mapRuns) take(t *Table, sharing Sharing) *mapRun {
	if r, ok := p.idle.take(sharing); ok {
		return r
	}
	return newMapRun(t, sharing)
}

// give takes a run back.
func (p *mapRuns) give(r *mapRun) { p.idle.give(r, r.sharing) }

// omittedFor returns what a tree leaves out, or nil if that is nothing.
func (t *Table) omittedFor(drop fieldpath.Tree) *omitted {
	paths := drop.Paths()
	if len(paths) == 0 {
		return nil
	}
	s := &omitted{fields: map[string]*omitted{}, shape: t.maps.shapeOf(strings.Join(paths, "\x00"))}
	for field, rest := range drop {
		if drop.Drops(field) {
			s.fields[field] = nil
		} else if inner := t.omittedFor(rest); inner != nil {
			s.fields[field] = inner
		}
	}
	return s
}

// shapeOf returns the shape of JSON of which those fields are left out.
func (p *mapRuns) shapeOf(fields string) *shape {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shapes[fields]
	if s == nil {
		s = &shape{salt: rand.Uint64()}
		if p.shapes == nil {
			p.shapes = map[string]*shape{}
		}
		p.shapes[fields] = s
	}
	return s
}
