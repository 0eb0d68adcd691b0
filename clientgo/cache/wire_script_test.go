package cache_test

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// step is the purpose of a request.
type step string

const (
	listStep   step = "list" // the first page of a list
	pageStep   step = "page" // a later page of a list
	streamStep step = "stream"
	watchStep  step = "watch"
)

var steps = []step{listStep, pageStep, streamStep, watchStep}

func stepOf(r *http.Request) step {
	q := r.URL.Query()
	switch {
	case q.Get("watch") == "" && q.Get("continue") == "":
		return listStep
	case q.Get("watch") == "":
		return pageStep
	case q.Get("sendInitialEvents") == "true":
		return streamStep
	default:
		return watchStep
	}
}

// choices are numbers below others: random ones, or those of [scriptBytes].
type choices interface{ IntN(n int) int }

func pick[T any](c choices, from ...T) T { return from[c.IntN(len(from))] }

// scriptBytes are read one after the other; after the last one there are zeros.
type scriptBytes struct{ rest []byte }

func (b *scriptBytes) next() (first int) {
	if len(b.rest) > 0 {
		first, b.rest = int(b.rest[0]), b.rest[1:]
	}
	return first
}

// IntN reads a byte, or two for numbers that may be above 255.
func (b *scriptBytes) IntN(n int) int {
	number := b.next()
	if n > 256 {
		number |= b.next() << 8
	}
	return number % n
}

// wireScript has the answers to the requests of each informer. nil is the answer of apisim.
type wireScript struct {
	kind  wireKind
	seed  uint64 // of the changes of objects
	paged bool   // apisim serves pages of three objects
	later later
	// first and rest are for requests of a kind: for each of the first ones, and for all later
	// ones. order is for the first requests, of any kind, that these leave.
	first map[step][]*answer
	rest  map[step]*answer
	order []*answer
}

// later is the time at which a script begins.
type later int

const (
	atOnce          later = iota
	afterCut              // when informers are in step, and their connections are cut
	afterCompaction       // the same, and the server has forgotten their versions
	laters          = iota
)

// maxOrder bounds the answers to requests of any kind.
const maxOrder = 24

// newScript makes a script. Half of the kinds of requests are not disturbed. The zeros after the
// end of [scriptBytes] disturb none.
func newScript(c choices) wireScript {
	s := wireScript{
		kind: pick(c, wireKinds...), seed: uint64(c.IntN(1 << 16)), paged: c.IntN(2) == 0,
		later: later(c.IntN(laters)), first: map[step][]*answer{}, rest: map[step]*answer{},
	}
	if c.IntN(2) == 1 {
		s.rest[streamStep] = refused(http.StatusUnprocessableEntity, "")
	}
	if c.IntN(3) == 2 {
		for range c.IntN(maxOrder + 1) {
			s.order = append(s.order, anyAnswer(c))
		}
	}
	for _, at := range steps {
		if c.IntN(2) == 0 || s.rest[at] != nil {
			continue
		}
		for range c.IntN(6) {
			var a *answer
			if c.IntN(3) > 0 {
				a = newAnswer(c, at)
			}
			s.first[at] = append(s.first[at], a)
		}
		if c.IntN(3) == 0 {
			s.rest[at] = newAnswer(c, at)
		}
	}
	return s
}

// answers yields the answers that are not those of apisim.
func (s wireScript) answers() iter.Seq[*answer] {
	return func(yield func(*answer) bool) {
		all := slices.Concat(slices.Collect(maps.Values(s.first))...)
		for _, a := range slices.AppendSeq(append(all, s.order...), maps.Values(s.rest)) {
			if a != nil && !yield(a) {
				return
			}
		}
	}
}

// has reports whether the name of an answer has a part.
func (s wireScript) has(part string) bool {
	for a := range s.answers() {
		if strings.Contains(a.name, part) {
			return true
		}
	}
	return false
}

// lies is the worst of its lies.
func (s wireScript) lies() (worst lie) {
	for a := range s.answers() {
		worst = max(worst, a.lies)
	}
	return worst
}

// leavesLists reports whether informers must be in step with the server while the script lasts:
// lists are answered, and watches fail, without asking for patience.
func (s wireScript) leavesLists() bool {
	for _, at := range []step{streamStep, watchStep} {
		if a := s.rest[at]; a != nil && (a.patient || a.lies == ofVersions) {
			return false
		}
	}
	return s.order == nil && s.rest[listStep] == nil && s.rest[pageStep] == nil
}

func (s wireScript) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, in pages: %t, later: %d", s.kind.name, s.paged, s.later)
	for _, at := range steps {
		fmt.Fprintf(&text, "\n  %s: %v and then %v", at, s.first[at], s.rest[at])
	}
	fmt.Fprintf(&text, "\n  others: %v", s.order)
	return text.String()
}
