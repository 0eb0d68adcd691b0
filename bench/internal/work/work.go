package work

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// Size says how much a workload does.
type Size string

// The sizes.
const (
	// Tiny is for tests: all workloads take seconds. Its figures mean nothing.
	Tiny Size = "tiny"
	// Quick is for a look: all workloads take less than two minutes.
	Quick Size = "quick"
	// Full is for results.
	Full Size = "full"
)

// pick returns the value for a size.
func pick[T any](s Size, tiny, quick, full T) T {
	switch s {
	case Tiny:
		return tiny
	case Quick:
		return quick
	default:
		return full
	}
}

// Work is one workload.
type Work interface {
	// Name names the workload.
	Name() string
	// Cases returns what it runs at a size.
	Cases(s Size) []Case
	// Run runs a case.
	Run(ctx context.Context, r Run) (Metrics, error)
}

// All returns the workloads.
func All() []Work {
	return []Work{decoding{}, initialSync{}, relist{}, updating{}, fanOut{}, stuck{}, churn{}, reads{}, idle{}}
}

// ByName returns the workload of a name.
func ByName(name string) (Work, error) {
	for _, w := range All() {
		if w.Name() == name {
			return w, nil
		}
	}
	return nil, fmt.Errorf("work: there is no workload %q", name)
}

// Case is what a workload is run with. What it has no use for is zero.
type Case struct {
	// Work is the name of the workload.
	Work string
	// Server is what a server has to be started with, nil for work from memory.
	Server *server.Spec `json:",omitempty"`
	// Seed is what objects are made from.
	Seed uint64
	// Objects is how many objects there are, or keys, or objects per informer.
	Objects int
	// Handlers is how many handlers there are, or handlers per informer.
	Handlers int `json:",omitempty"`
	// ListerWatcher has the objects come from a ListerWatcher that decodes by itself.
	ListerWatcher bool `json:",omitempty"`
	// Events is how many updates or lifetimes there are.
	Events int `json:",omitempty"`
	// Paced is how many updates there are one at a time, a millisecond apart.
	Paced int `json:",omitempty"`
	// Informers is how many informers there are.
	Informers int `json:",omitempty"`
	// Read is the kind of reads.
	Read string `json:",omitempty"`
	// Readers are the numbers of goroutines that read.
	Readers []int `json:",omitempty"`
	// Duration is how long each measurement lasts.
	Duration time.Duration `json:",omitempty"`
	// HeapLimit ends what would grow the heap beyond it, in bytes.
	HeapLimit uint64 `json:",omitempty"`
}

// RunsOn tells whether a stack has what the case is about, and has it for itself.
func (c Case) RunsOn(s stack.Stack) bool {
	switch {
	case c.Work == decoding{}.Name():
		return s.Decoder() != nil
	case c.ListerWatcher:
		return s.Name() != stack.Native
	}
	return true
}

// String names the case among those of all workloads.
func (c Case) String() string {
	var parts []string
	if s := c.Server; s != nil {
		parts = append(parts, fmt.Sprintf("%s %s, %s, %s", thousands(s.Objects), s.Kind, s.Encoding, s.Way))
	} else if c.Informers > 0 {
		parts = append(parts, fmt.Sprintf("%s informers", thousands(c.Informers)))
	} else {
		parts = append(parts, fmt.Sprintf("%s pods", thousands(c.Objects)))
	}
	if c.ListerWatcher {
		parts = append(parts, "ListerWatcher")
	}
	if c.Handlers > 0 {
		parts = append(parts, plural(c.Handlers, "handler"))
	}
	if c.Events > 0 {
		parts = append(parts, thousands(c.Events)+" events")
	}
	if c.Read != "" {
		parts = append(parts, c.Read)
	}
	return c.Work + ": " + strings.Join(parts, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%s %ss", thousands(n), what)
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Run is one run of a case.
type Run struct {
	Case
	// Stack is the stack to run it on.
	Stack stack.Stack
	// URL is the address of the server that the case asks for.
	URL string
}

// target returns the server of a run.
func (r Run) target() stack.Target { return stack.Target{URL: r.URL, Spec: *r.Server} }

// spec returns the usual server of a kind.
func spec(kind objects.Kind, n int, e server.Encoding, w server.Way) *server.Spec {
	return &server.Spec{Kind: kind, Objects: n, Seed: seed, Encoding: e, Way: w}
}

// seed is what all objects are made from.
const seed = 1
