package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
)

// TestC03_TheLedger compares the writes of keys and objects with a list.
func TestC03_TheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ledger{keys: map[string]*pending{}, objects: map[objectID]*writes{}}
		by := &caches.Informer{}
		var all []*awaited
		before := func(w *awaited) (earlier []*awaited) {
			for _, other := range all {
				if other == w {
					break
				}
				if other.of == w.of && other.Object == w.Object {
					earlier = append(earlier, other)
				}
			}
			return earlier
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				w := &awaited{by: by, of: l.obtain(rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"), 0)}
				w.Object = rapid.SampledFrom([]string{"o", "p", "q"}).Draw(t, "object")
				w.shown = rapid.Bool().Draw(t, "shown")
				if got, want := slices.Collect(l.earlier(w)), before(w); !slices.Equal(got, want) {
					t.Fatalf("before it is inserted, earlier are %v, want %v", got, want)
				}
				l.insert(w)
				all = append(all, w)
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("no writes")
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "i")
				l.remove(all[i])
				all = slices.Delete(all, i, i+1)
			},
			"": func(t *rapid.T) {
				objects := map[string]int{}
				for _, w := range all {
					objects[w.Object]++
					want := before(w)
					isOpen := func(other *awaited) bool { return !other.shown }
					if got := slices.Collect(l.earlier(w)); !slices.Equal(got, want) || l.follows(w) != slices.ContainsFunc(want, isOpen) {
						t.Fatalf("earlier are %v, want %v; it follows one: %v", got, want, l.follows(w))
					}
				}
				for _, p := range l.keys {
					n := 0
					for range p.all(ofKey) {
						n++
					}
					if n != p.n {
						t.Fatalf("%d writes of %s, want %d", p.n, p.key, n)
					}
				}
				if len(l.objects) != len(objects) {
					t.Fatalf("writes of %d objects, want %d", len(l.objects), len(objects))
				}
			},
		})
	})
}

// TestC03_LowerVersions lists what remains of a known version when a cache follows another history.
func TestC03_LowerVersions(t *testing.T) {
	for _, test := range []struct{ known, reached, want string }{
		{"", "5", ""}, {"4", "5", "4"}, {"5", "5", "5"}, {"6", "5", "5"}, {"10", "9", "9"}, {"6", "", ""},
	} {
		if got := caches.Older(test.known, test.reached); got != test.want {
			t.Errorf("%q, and %q is reached: %q, want %q", test.known, test.reached, got, test.want)
		}
	}
}

// BenchmarkC03_OneObject measures a write of an object that 10,000 keys have written, and that no cache shows.
func BenchmarkC03_OneObject(b *testing.B) {
	r := newTestRun(b, 1)
	write := func(i int) {
		r.barrier.record(fmt.Sprint("a/y", i), noSlot, []guard.Write{{
			Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "a", Name: "x0",
			Version: fmt.Sprint(10_000_000 + i), Sent: time.Now(),
		}}, nil, r.c.informers.All)
	}
	for i := range 10_000 {
		write(i)
	}
	i := 10_000
	for b.Loop() {
		write(i)
		i++
	}
}
