package barrier

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// cache is the cache of an informer of ConfigMaps at version 1. It has the objects a/x0, a/x1 and so on.
type cache struct{ inspect.Informer }

// handle is the informer of the cache.
type handle struct{ caches.Handle }

func (cache) Name() string                             { return "configmaps" }
func (cache) Selects() bool                            { return false }
func (cache) Selectors() (labels, fields string)       { return "", "" }
func (cache) Slots() *slot.Holding                     { return nil }
func (cache) Holds(string, string) bool                { return true }
func (cache) Over() error                              { return nil }
func (cache) Reached(string) (version string, ok bool) { return "1", true }
func (cache) Received(key string) (version, uid string, ok bool) {
	return "1", string(uidOf(key)), true
}
func (cache) Resource() source.Resource { return source.Resource{Name: "configmaps"} }
func (handle) HasSynced() bool          { return true }
func (handle) Namespaces() []string     { return nil }

func uidOf(key string) types.UID { return types.UID("uid of " + key) }

// followed returns the informers of a controller with such a cache.
func followed() func() []*caches.Informer {
	all := []*caches.Informer{{Informer: cache{}, Handle: handle{}}}
	return func() []*caches.Informer { return all }
}

// writeOf returns a write of an object.
func writeOf(name, version string) guard.Write {
	return guard.Write{
		Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "a", Name: name,
		UID: uidOf("a/" + name), Version: version, Gone: version == "", Sent: time.Now(),
	}
}

// TestC03_TheBarrierForgets held keys, and own writes whose events do not come.
func TestC03_TheBarrierForgets(t *testing.T) {
	b, informers := New(), followed()
	state := caches.State{ObjectID: caches.ObjectID{Key: "a/x0"}}
	b.Record("a/x0", NoSlot, []guard.Write{writeOf("x0", "2"), writeOf("x0", "3"), writeOf("x0", "")}, nil, informers)
	if parked, _ := b.Hold("a/x0"); !parked || len(b.toAsk) > 0 {
		t.Errorf("Hold: %v, %v", parked, b.toAsk)
	}
	if n := b.keys["a/x0"].open; n != 2 {
		t.Errorf("%d writes are awaited, want the newest one and the delete", n)
	}
	for _, state.Version = range []string{"2", "3"} {
		ev := Event{State: state}
		if b.Event(&ev); ev.Writer != "a/x0" {
			t.Errorf("version %s was written by %q", ev.Version, ev.Writer)
		}
	}
	state.Version = "2"
	ev := Event{State: state}
	if b.Event(&ev); ev.Writer != "" {
		t.Errorf("an event was that of a write twice, of %q", ev.Writer)
	}
	state.Version, state.Deleted = "4", string(uidOf("a/x0"))
	b.Event(&Event{State: state})
	if wake := b.Forget(informers()[0]); !slices.Equal(wake, []string{"a/x0"}) {
		t.Errorf("Forget: %v are held back no more", wake)
	}
	if parked, _ := b.Hold("a/x0"); parked {
		t.Error("Hold: it is parked")
	}
	if len(b.keys)+len(b.objects)+len(b.due) != 0 {
		t.Errorf("left: %v %v %v", b.keys, b.objects, b.due)
	}
}

// TestC03_AWriteWithoutAnEvent is forgotten after a minute.
func TestC03_AWriteWithoutAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New()
		b.Record("a/x0", NoSlot, []guard.Write{writeOf("x0", "1")}, nil, followed())
		if parked, _ := b.Hold("a/x0"); parked || len(b.keys) != 1 {
			t.Errorf("parked %v, %d keys", parked, len(b.keys))
		}
		<-b.Alarm()
		b.CheckDue()
		if len(b.keys)+len(b.objects)+len(b.due) != 0 {
			t.Errorf("left: %v %v %v", b.keys, b.objects, b.due)
		}
	})
}

// TestC03_DueKeysAreAskedAbout once, however often they are due before the answer.
func TestC03_DueKeysAreAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, informers := New(), followed()
		for i := range 100 {
			name := fmt.Sprint("x", i)
			b.Record("a/"+name, NoSlot, []guard.Write{writeOf(name, "2")}, nil, informers)
			b.Hold("a/" + name)
		}
		for range 100 {
			<-b.Alarm()
			if wake := b.CheckDue(); len(wake) > 0 || len(b.toAsk) != 100 {
				t.Errorf("CheckDue: wake %v, ask about %v", wake, b.toAsk)
			}
		}
		b.Restart()
		b.timer.Stop()
	})
}

// BenchmarkC03_Overdue measures one check of each of 40,000 keys that are held back. A check
// comes every ten seconds.
func BenchmarkC03_Overdue(b *testing.B) {
	held, informers := New(), followed()
	for i := range 40_000 {
		name := fmt.Sprint("x", i)
		held.Record("a/"+name, NoSlot, []guard.Write{writeOf(name, "50000")}, nil, informers)
		if parked, _ := held.Hold("a/" + name); !parked {
			b.Fatalf("%s is not held back", name)
		}
	}
	for b.Loop() {
		held.epoch = held.epoch.Add(-written.AskAgain)
		held.CheckDue()
	}
}

// BenchmarkC03_OneObject measures a write of an object that 10,000 keys have written, and that no cache shows.
func BenchmarkC03_OneObject(b *testing.B) {
	held, informers := New(), followed()
	write := func(i int) {
		w := writeOf("x0", fmt.Sprint(10_000_000+i))
		held.Record(fmt.Sprint("a/y", i), NoSlot, []guard.Write{w}, nil, informers)
	}
	for i := range 10_000 {
		write(i)
	}
	for i := 10_000; b.Loop(); i++ {
		write(i)
	}
}
