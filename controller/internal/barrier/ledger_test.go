package barrier

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidings-go/tidings/controller/internal/caches"
)

// TestC03_TheLedger compares the writes of keys and objects with a list.
func TestC03_TheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ledger{keys: map[string]*pending{}, objects: map[caches.ObjectID]*writes{}}
		by := &caches.Informer{}
		var all []*write
		before := func(w *write) (earlier []*write) {
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
				w := &write{by: by, of: l.obtain(rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"), 0)}
				w.Object = rapid.SampledFrom([]string{"o", "p", "q"}).Draw(t, "object")
				w.settled = rapid.Bool().Draw(t, "settled")
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
					isOpen := func(other *write) bool { return !other.settled }
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
