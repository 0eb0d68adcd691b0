package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
)

// TestP20_ObjectsOutsideTheSelectionNeverReachTheCache has a server that ignores selectors.
func TestP20_ObjectsOutsideTheSelectionNeverReachTheCache(t *testing.T) {
	s := tidings.Selection{Namespace: "default", Labels: "n=1", Fields: "metadata.name=in"}
	propertyWith(t, tidings.FactoryOptions{}, s, func(w *world) {
		w.gate.set(func(_ http.ResponseWriter, r *http.Request) bool {
			query := r.URL.Query()
			query.Del("fieldSelector")
			if query.Get("labelSelector") != "n=1" {
				w.Errorf("the server was asked for %q", query)
			}
			query.Del("labelSelector")
			r.URL.RawQuery = query.Encode()
			return false
		})
		w.create("in", "1")
		w.create("out", "2")
		w.create("other", "1")
		l := w.follow()
		w.start()
		w.create("later", "2")
		w.update("in", "2")
		synctest.Wait()
		expect(w, l.Texts(), "Added default/in initial 1", "Deleted default/in tombstone 1")
		h := w.health()
		if h.Dropped != 4 || !strings.Contains(fmt.Sprint(h.LastDropped), "default/in") {
			w.Errorf("dropped %d, the last: %v", h.Dropped, h.LastDropped)
		}
	})
}

// undecodableRows have what happens to the object default/b among others. before is the state of
// the server when the informer starts.
var undecodableRows = []struct {
	name   string
	before func(g *gauged)
	after  func(g *gauged)
}{
	{"at the start", func(g *gauged) { g.set("default/b", noSize) }, func(g *gauged) {
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.set("default/f", int64(2))
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=2")
		g.relist()
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=2")
		g.set("default/b", int64(2))
		g.expect(0, "", "default/a=1 default/b=2 default/c=1 default/d=1 default/e=1 default/f=2")
	}},
	{"on another page", func(g *gauged) { g.set("default/e", noSize) }, func(g *gauged) {
		g.expect(1, "default/e", "default/a=1 default/c=1 default/d=1 default/f=1")
	}},
	{"a field with a decoder of its own", func(g *gauged) { g.set("default/b", "due") }, func(g *gauged) {
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
		if text := g.informer.Health().LastDropped.Error(); !strings.Contains(text, "spec.due") {
			g.Errorf("health does not name the field: %s", text)
		}
	}},
	{"while it runs", nil, func(g *gauged) {
		g.set("default/b", int64(1))
		made := g.set("default/b", noSize)
		g.must(g.informer.WaitFor(g.ctx, made.GetResourceVersion())) // P14
		g.expect(1, "default/b", "default/a=1 default/b=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.set("default/g", noSize)
		g.expect(2, "default/b", "default/a=1 default/b=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.relist()
		g.expect(2, "default/b", "default/a=1 default/b=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.set("default/b", int64(3))
		g.expect(1, "default/g", "default/a=1 default/b=3 default/c=1 default/d=1 default/e=1 default/f=1")
	}},
	{"deleted", nil, func(g *gauged) {
		g.set("default/b", int64(1))
		g.set("default/b", noSize)
		g.set("default/g", noSize)
		g.expect(2, "default/b", "default/a=1 default/b=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.delete("default/b")
		g.delete("default/g")
		g.expect(0, "", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
	}},
	{"deleted between two watches", nil, func(g *gauged) {
		g.set("default/b", int64(1))
		g.set("default/b", noSize)
		g.expect(1, "default/b", "default/a=1 default/b=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(0, 410))
		g.server.CutConnections()
		g.delete("default/b")
		time.Sleep(time.Minute)
		g.expect(0, "", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
	}},
	{"in another incarnation", nil, func(g *gauged) {
		g.set("default/b", int64(1))
		g.expect(0, "", "default/a=1 default/b=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.delete("default/b")
		g.set("default/b", noSize)
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.relist()
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
	}},
	{"in a slot that goes and comes", nil, func(g *gauged) {
		slots := g.setInSlotOfItsOwn("default/b", noSize)
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.slots.Remove(slots)
		g.expect(0, "", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.set("default/b", "few") // its slot is not held
		g.relist()
		g.expect(0, "", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.must(g.slots.Add(g.ctx, slots))
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
		g.set("default/b", int64(2))
		g.expect(0, "", "default/a=1 default/b=2 default/c=1 default/d=1 default/e=1 default/f=1")
	}},
	{"in a restored backup", nil, func(g *gauged) {
		g.set("default/b", noSize)
		backup := g.server.Snapshot()
		g.set("default/b", int64(5))
		g.expect(0, "", "default/a=1 default/b=5 default/c=1 default/d=1 default/e=1 default/f=1")
		g.server.Rewind(backup)
		time.Sleep(10 * time.Minute)
		g.expect(1, "default/b", "default/a=1 default/c=1 default/d=1 default/e=1 default/f=1")
	}},
}

// TestP20_AnObjectThatCannotBeDecodedCostsItselfAlone has a custom type without a schema, and an
// object with a text where the Go type has a number.
func TestP20_AnObjectThatCannotBeDecodedCostsItselfAlone(t *testing.T) {
	for how, o := range streamedAndPaged {
		for _, row := range undecodableRows {
			t.Run(how+"/"+row.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := &gauged{T: t, server: apisim.Start(t)}
					(&world{T: t, server: g.server}).install()
					for _, name := range []string{"a", "c", "d", "e", "f"} {
						g.set("default/"+name, int64(1))
					}
					if row.before != nil {
						row.before(g)
					}
					g.start(o)
					row.after(g)
				})
			})
		}
	}
}

func TestP20_ObjectWithoutANameIsDropped(t *testing.T) {
	s := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("", "5", "5"), stateAt("a", "5", "5")}}}
	runSource(t, s, informerOptions{}, func(i sourced) {
		i.send(source.Modified, stateAt("", "7", "7"))
		expect(t, i.told.Texts(), "Added default/a initial 5")
		if h := i.Health(); h.Dropped != 2 ||
			!strings.Contains(h.LastDropped.Error(), "it has no name") {
			t.Errorf("health is %+v", h)
		}
	})
}
