package store

import (
	"fmt"
	"runtime"
	"testing"
)

type memoryObject struct{ app, owner string }

func filledStore(t testing.TB, n, order int) *Store[*memoryObject] {
	t.Helper()
	s, err := New(Options[*memoryObject]{Indexes: map[any]IndexFunc[*memoryObject]{
		"app":   func(o *memoryObject) ([]string, error) { return []string{o.app}, nil },
		"owner": func(o *memoryObject) ([]string, error) { return []string{o.owner}, nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	for first := 0; first < n; first += 1000 {
		s.Update(func(b *Batch[*memoryObject]) {
			for i := first; i < min(n, first+1000); i++ {
				k := i * order % n
				b.Set(fmt.Sprintf("namespace-%03d/some-pod-name-%08d", k%100, k), &memoryObject{
					app: fmt.Sprintf("application-%03d", k%200), owner: fmt.Sprintf("0000-owner-%08d-0000", k),
				})
			}
		})
	}
	return s
}

// live returns the bytes of reachable objects.
func live() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestMemoryIsWhatTheHeapHas compares the estimate with the heap, for keys that arrive in order and
// for others.
func TestMemoryIsWhatTheHeapHas(t *testing.T) {
	const n = 20_000
	for _, order := range []int{1, 7919} {
		before := live()
		s := filledStore(t, n, order)
		const perObject = 32 + 16 + 32 // the object, and the two texts that the indexes copy
		heap := live() - before - n*perObject
		m := s.Snapshot().Memory()
		estimate := m.Keys + m.Indexes[0] + m.Indexes[1]
		t.Logf("order %d: the heap has %d bytes, the estimate is %d: %+v", order, heap, estimate, m)
		if 10*estimate < 8*heap || 10*estimate > 12*heap {
			t.Errorf("order %d: the heap has %d bytes, the estimate is %d", order, heap, estimate)
		}
		if m.Indexes[1] < m.Indexes[0] {
			t.Errorf("the index with more values takes less: %v", m.Indexes)
		}
		runtime.KeepAlive(s)
	}
}

func TestMemoryOfSmallStores(t *testing.T) {
	for n := range 70 {
		m := filledStore(t, n, 1).Snapshot().Memory()
		if m.Keys < n*90 || m.Keys > 400+n*300 || len(m.Indexes) != 2 || n > 0 && m.Indexes[0] <= 0 {
			t.Errorf("%d objects: %+v", n, m)
		}
	}
	if m := (Snapshot[int]{}).Memory(); m.Keys != 0 || m.Indexes != nil {
		t.Errorf("the empty snapshot: %+v", m)
	}
}

func TestAt(t *testing.T) {
	for _, n := range []int{1, 64, 65, 5000} {
		snapshot, i := filledStore(t, n, 7919).Snapshot(), 0
		for key, object := range snapshot.All() {
			if k, o := snapshot.At(i); k != key || o != object {
				t.Fatalf("of %d objects, the one at %d is %s, want %s", n, i, k, key)
			}
			i++
		}
	}
}

func BenchmarkMemoryEstimate(b *testing.B) {
	s := filledStore(b, 50_000, 7919)
	for b.Loop() {
		s.Snapshot().Memory()
	}
}
