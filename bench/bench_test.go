package bench

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// runBenchmarks runs benchmarks in their smallest size in another process, and returns their
// figures. Each benchmark checks the work of its stack.
func runBenchmarks(t *testing.T, arguments ...string) map[string]map[string]float64 {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{"-test.run", "^$", "-size", "tiny", "-test.bench"}, arguments...)
	output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if !bytes.Contains(output, []byte("\nUnit reads/s better=higher\n")) {
		t.Error("benchstat is not told that more reads are better")
	}
	results, err := parse(output)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]float64{}
	for _, r := range results {
		name := r.Name.String()
		if found[name] != nil {
			t.Errorf("two benchmarks are called %s", name)
		}
		found[name] = map[string]float64{}
		for _, v := range r.Values {
			if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || v.Value < 0 {
				t.Errorf("%s: %s is %v", name, v.Unit, v.Value)
			}
			found[name][v.Unit] = v.Value
		}
	}
	return found
}

// TestBenchmarks runs every benchmark.
func TestBenchmarks(t *testing.T) {
	found := runBenchmarks(t, ".", "-processes=false")
	if want := 2 + 10*3 + 2*2 + 2*3 + 3 + 2 + 4*2 + 4*2 + 2*3; len(found) < want {
		t.Errorf("%d benchmarks ran, want at least %d", len(found), want)
	}
	for name, values := range found {
		if len(values) < 4 {
			t.Errorf("%s reports %v", name, values)
		}
	}
}

// TestProcesses runs a few benchmarks in processes of their own, some with a server.
func TestProcesses(t *testing.T) {
	found := runBenchmarks(t, "Sync/^pods/protobuf/[sp].*ed/handlers=1$|Idle")
	if want := 2*4 + 3; len(found) != want {
		t.Errorf("%d benchmarks ran, want %d: %v", len(found), want, found)
	}
	for name, values := range found {
		if values["heap-B/object"] == 0 && values["heap-B/informer"] == 0 {
			t.Errorf("%s does not report its heap: %v", name, values)
		}
	}
}

// TestProcessFails checks that a worker without a result fails.
func TestProcessFails(t *testing.T) {
	if r := testing.Benchmark(func(b *testing.B) { runWorker(b, stack.Target{}) }); r.N > 0 {
		t.Errorf("a worker that runs no benchmark has the result %v", r)
	}
}

// short has one object too few in every list.
type short struct{ stack.Informer }

func (s short) All() int { return s.Informer.All() - 1 }
func (s short) Len() int { return s.Informer.Len() - 1 }

// notifying notifies handlers of each change as often as times returns for their policy.
type notifying struct {
	stack.Informer
	times func(tidings.Policy, stack.Change) int
}

func (n notifying) AddHandler(h stack.Handler, p tidings.Policy) error {
	return n.Informer.AddHandler(func(c stack.Change, before, after tidings.Object) {
		for range n.times(p, c) {
			h(c, before, after)
		}
	}, p)
}

// TestWrongStacks checks that benchmarks fail on a stack that does not do its work.
func TestWrongStacks(t *testing.T) {
	*size = "tiny"
	idle := func(b *testing.B, s stack.Stack) { benchmarkIdle(b, s, 5, time.Millisecond) }
	reads := func(b *testing.B, s stack.Stack) { benchmarkReads(b, s, "all", 100, 1) }
	stuck := func(b *testing.B, s stack.Stack) {
		stuckGrowth().benchmark(b, s, tidings.PolicyConflateState)
	}
	type informer = stack.Informer
	right := func(i informer) informer { return i }
	shorter := func(i informer) informer { return short{i} }
	twice := func(i informer) informer {
		return notifying{i, func(tidings.Policy, stack.Change) int { return 2 }}
	}
	losing := func(i informer) informer {
		return notifying{i, func(p tidings.Policy, c stack.Change) int {
			if p == tidings.PolicyConflateState && c == stack.Updated {
				return 0
			}
			return 1
		}}
	}
	for _, test := range []struct {
		name      string
		benchmark func(*testing.B, stack.Stack)
		wrong     func(informer) informer
		fails     bool
	}{
		{"idle", idle, right, false},
		{"reads", reads, right, false},
		{"stuck", stuck, right, false},
		{"a list without an object", reads, shorter, true},
		{"a cache without an object", idle, shorter, true},
		{"a handler notified twice", idle, twice, true},
		{"a stuck handler that misses updates", stuck, losing, true},
	} {
		s := stack.Native()
		s.FromMemory = func(f *feed.Feed, o stack.Options) (informer, error) {
			i, err := stack.Native().FromMemory(f, o)
			return test.wrong(i), err
		}
		r := testing.Benchmark(func(b *testing.B) { test.benchmark(b, s) })
		if (r.N == 0) != test.fails {
			t.Errorf("%s: failed is %t, want %t", test.name, r.N == 0, test.fails)
		}
	}
}
