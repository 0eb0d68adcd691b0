package listwatch

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidings-go/tidings/source"
)

const (
	added    = watch.Added
	modified = watch.Modified
	deleted  = watch.Deleted
)

// labelledEvent is an event whose object has a label.
func labelledEvent(t watch.EventType, name, version, n string) watch.Event {
	obj := pod(name, version)
	obj.Labels = map[string]string{"n": n}
	return watch.Event{Type: t, Object: obj}
}

// trustRow is a stream of events. trusted reports whether the versions are trusted after them.
type trustRow struct {
	name    string
	o       source.WatchOptions
	events  []watch.Event
	trusted bool
	cached  metav1.Object
}

func trustRows() []trustRow {
	from, streamed := source.WatchOptions{Version: "1"}, source.WatchOptions{SendInitialEvents: true}
	from9 := source.WatchOptions{Version: "9"}
	same := event(modified, "a", "2")
	nameless := pod("a", "2")
	nameless.UID = ""
	return []trustRow{
		// Servers.
		{"a server", from, []watch.Event{event(added, "a", "2"), event(modified, "b", "3"), event(watch.Bookmark, "", "7"), event(deleted, "a", "8")}, true, nil},
		{"an object of another type", from, []watch.Event{{Type: added, Object: &corev1.Service{}}, event(added, "a", "2")}, true, nil},
		{"an initial state in no order", streamed, []watch.Event{event(added, "a", "5"), event(added, "b", "3"), endOfList("9"), event(added, "c", "10")}, true, nil},
		{"a watch from any version", source.WatchOptions{Version: "0"}, []watch.Event{event(added, "a", "5"), event(added, "b", "3"), event(modified, "b", "6")}, true, nil},
		{"a lease that ends", from, []watch.Event{event(added, "a", "2"), event(added, "b", "3"), event(deleted, "a", "4"), event(deleted, "b", "4"), event(deleted, "c", "4"), event(added, "d", "5")}, true, nil},
		{"a bookmark within the end of a lease", from, []watch.Event{event(deleted, "a", "4"), event(watch.Bookmark, "", "4"), event(deleted, "b", "4")}, true, nil},
		{"a bookmark before the end of a lease", from, []watch.Event{event(watch.Bookmark, "", "4"), event(deleted, "b", "4")}, true, nil},
		{"a bookmark of an older version", from, []watch.Event{event(added, "a", "5"), event(watch.Bookmark, "", "3"), event(added, "b", "6")}, true, nil},
		{"a bookmark of no version", from, []watch.Event{event(added, "a", "5"), event(watch.Bookmark, "", "x"), event(watch.Bookmark, "", ""), event(added, "b", "6")}, true, nil},

		// Servers, or proxies, that repeat themselves.
		{"the state before", from, []watch.Event{event(added, "a", "2"), event(modified, "a", "3"), event(added, "a", "2")}, true, nil},
		{"the same state", from, []watch.Event{event(modified, "a", "2"), event(modified, "a", "2")}, true, nil},
		{"the same delete", from, []watch.Event{event(added, "a", "2"), event(deleted, "a", "3"), event(deleted, "a", "3")}, true, nil},
		{"a state before the delete", from, []watch.Event{event(added, "a", "2"), event(deleted, "a", "3"), event(added, "a", "2")}, true, nil},
		{"all again", from, []watch.Event{event(added, "a", "2"), event(modified, "b", "3"), event(deleted, "a", "4"),
			event(added, "a", "2"), event(modified, "b", "3"), event(deleted, "a", "4"), event(added, "c", "5")}, true, nil},
		{"a state of the initial state", streamed, []watch.Event{event(added, "a", "5"), endOfList("9"), event(added, "a", "5")}, true, nil},

		// Fakes.
		{"the version it began at", source.WatchOptions{Version: "2"}, []watch.Event{event(added, "a", "2")}, false, nil},
		{"one version for all", from, []watch.Event{event(added, "a", "2"), event(added, "b", "2")}, false, nil},
		{"one version for all states", from, []watch.Event{event(added, "a", "2"), labelledEvent(modified, "a", "2", "1")}, false, nil},
		{"one pointer", from, []watch.Event{same, same}, false, nil},
		{"one version for all states, and no UID", from, []watch.Event{{Type: added, Object: nameless}, {Type: modified, Object: nameless.DeepCopy()}}, false, nil},
		{"a delete of the last state", from, []watch.Event{event(added, "a", "2"), event(deleted, "a", "2")}, false, nil},
		{"an older delete of the last state", from, []watch.Event{event(added, "a", "2"), event(added, "b", "3"), event(deleted, "a", "2")}, false, nil},
		{"deletes of one version, and adds", from, []watch.Event{event(deleted, "a", "2"), event(deleted, "b", "2"), event(added, "c", "2")}, false, nil},
		{"an object that comes again", from, []watch.Event{event(deleted, "a", "2"), event(added, "a", "2")}, false, nil},
		{"a counter for each object", from, []watch.Event{event(added, "a", "2"), event(modified, "a", "3"), event(added, "b", "2")}, false, nil},
		{"before a bookmark", from, []watch.Event{event(watch.Bookmark, "", "7"), event(added, "a", "6")}, false, nil},
		{"no version", from, []watch.Event{event(added, "a", "")}, false, nil},
		{"version 0", from, []watch.Event{event(added, "a", "0")}, false, nil},
		{"no version of a delete", from, []watch.Event{event(deleted, "a", ""), event(deleted, "b", "")}, false, nil},
		{"an event from within the initial state", streamed, []watch.Event{event(added, "a", "5"), endOfList("9"), event(added, "c", "8")}, false, nil},
		{"a watch from now", source.WatchOptions{}, []watch.Event{event(added, "a", "5"), event(added, "b", "3"), event(modified, "b", "6"), labelledEvent(modified, "b", "6", "1")}, false, nil},

		// The cache.
		{"a state before the cached one", from9, []watch.Event{event(modified, "a", "2")}, false, pod("a", "3")},
		{"the cached state", from9, []watch.Event{event(modified, "a", "3")}, true, pod("a", "3")},
		{"another state of the cached version", from9, []watch.Event{labelledEvent(modified, "a", "3", "1")}, false, pod("a", "3")},
		{"a delete of the cached version", from9, []watch.Event{event(deleted, "a", "3")}, false, pod("a", "3")},
		{"a state after the cached one", from9, []watch.Event{event(modified, "a", "4")}, false, pod("a", "3")},
		{"nothing cached", from9, []watch.Event{event(modified, "a", "3")}, false, nil},
	}
}

// TestStreamTrust checks which events end the trust in versions, and that it ends before Next
// returns them. The rows with a cached object are about states that the source has forgotten.
func TestStreamTrust(t *testing.T) {
	for _, tt := range trustRows() {
		t.Run(tt.name, func(t *testing.T) {
			stream, _, versions := open(t, tt.o, tt.events...)
			versions.LookIn(func(string) (any, bool) { return tt.cached, tt.cached != nil })
			if _, err := stream.Next(); err != nil {
				t.Fatal(err)
			}
			if versions.Trusted() != tt.trusted {
				t.Errorf("trusted is %v, want %v", versions.Trusted(), tt.trusted)
			}
		})
	}
}

// TestCertainFakes: numbers out of order may be those of a restored backup, others may not.
func TestCertainFakes(t *testing.T) {
	for _, tt := range []struct {
		second string
		fake   bool
	}{{"3", false}, {"1", false}, {"", true}, {"0", true}, {"x", true}} {
		for _, before := range []string{"2", "1"} { // trusted until then, and not
			stream, _, versions := open(t, source.WatchOptions{Version: "1"},
				event(watch.Added, "a", before), event(watch.Deleted, "b", tt.second))
			if _, err := stream.Next(); err != nil {
				t.Fatal(err)
			}
			if versions.IsFake() != tt.fake {
				t.Errorf("after the versions %q and %q, it is a fake: %t, want %t", before, tt.second, versions.IsFake(), tt.fake)
			}
		}
	}
}
