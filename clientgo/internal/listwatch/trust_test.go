package listwatch

import (
	"testing"

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

// TestStreamTrust: which events end the trust in versions, and that it ends before they
// are handed on.
func TestStreamTrust(t *testing.T) {
	from, streamed := source.WatchOptions{Version: "1"}, source.WatchOptions{SendInitialEvents: true}
	same := event(modified, "a", "2")
	nameless := pod("a", "2")
	nameless.UID = ""
	for _, tt := range []struct {
		name    string
		o       source.WatchOptions
		events  []watch.Event
		trusted bool
	}{
		// Servers.
		{"a server", from, []watch.Event{event(added, "a", "2"), event(modified, "b", "3"), event(watch.Bookmark, "", "7"), event(deleted, "a", "8")}, true},
		{"an initial state in no order", streamed, []watch.Event{event(added, "a", "5"), event(added, "b", "3"), endOfList("9"), event(added, "c", "10")}, true},
		{"a watch from any version", source.WatchOptions{Version: "0"}, []watch.Event{event(added, "a", "5"), event(added, "b", "3"), event(modified, "b", "6")}, true},
		{"a lease that ends", from, []watch.Event{event(added, "a", "2"), event(added, "b", "3"), event(deleted, "a", "4"), event(deleted, "b", "4"), event(deleted, "c", "4"), event(added, "d", "5")}, true},
		{"a bookmark within the end of a lease", from, []watch.Event{event(deleted, "a", "4"), event(watch.Bookmark, "", "4"), event(deleted, "b", "4")}, true},
		{"a bookmark before the end of a lease", from, []watch.Event{event(watch.Bookmark, "", "4"), event(deleted, "b", "4")}, true},
		{"a bookmark of an older version", from, []watch.Event{event(added, "a", "5"), event(watch.Bookmark, "", "3"), event(added, "b", "6")}, true},
		{"a bookmark of no version", from, []watch.Event{event(added, "a", "5"), event(watch.Bookmark, "", "x"), event(watch.Bookmark, "", ""), event(added, "b", "6")}, true},

		// Servers, or proxies, that repeat themselves.
		{"the state before", from, []watch.Event{event(added, "a", "2"), event(modified, "a", "3"), event(added, "a", "2")}, true},
		{"the same state", from, []watch.Event{event(modified, "a", "2"), event(modified, "a", "2")}, true},
		{"the same delete", from, []watch.Event{event(added, "a", "2"), event(deleted, "a", "3"), event(deleted, "a", "3")}, true},
		{"a state before the delete", from, []watch.Event{event(added, "a", "2"), event(deleted, "a", "3"), event(added, "a", "2")}, true},
		{"all again", from, []watch.Event{event(added, "a", "2"), event(modified, "b", "3"), event(deleted, "a", "4"),
			event(added, "a", "2"), event(modified, "b", "3"), event(deleted, "a", "4"), event(added, "c", "5")}, true},
		{"a state of the initial state", streamed, []watch.Event{event(added, "a", "5"), endOfList("9"), event(added, "a", "5")}, true},

		// Fakes.
		{"the version it began at", source.WatchOptions{Version: "2"}, []watch.Event{event(added, "a", "2")}, false},
		{"one version for all", from, []watch.Event{event(added, "a", "2"), event(added, "b", "2")}, false},
		{"one version for all states", from, []watch.Event{event(added, "a", "2"), labelledEvent(modified, "a", "2", "1")}, false},
		{"one pointer", from, []watch.Event{same, same}, false},
		{"one version for all states, and no UID", from, []watch.Event{{Type: added, Object: nameless}, {Type: modified, Object: nameless.DeepCopy()}}, false},
		{"a delete of the last state", from, []watch.Event{event(added, "a", "2"), event(deleted, "a", "2")}, false},
		{"an older delete of the last state", from, []watch.Event{event(added, "a", "2"), event(added, "b", "3"), event(deleted, "a", "2")}, false},
		{"deletes of one version, and adds", from, []watch.Event{event(deleted, "a", "2"), event(deleted, "b", "2"), event(added, "c", "2")}, false},
		{"an object that comes again", from, []watch.Event{event(deleted, "a", "2"), event(added, "a", "2")}, false},
		{"a counter for each object", from, []watch.Event{event(added, "a", "2"), event(modified, "a", "3"), event(added, "b", "2")}, false},
		{"before a bookmark", from, []watch.Event{event(watch.Bookmark, "", "7"), event(added, "a", "6")}, false},
		{"no version", from, []watch.Event{event(added, "a", "")}, false},
		{"version 0", from, []watch.Event{event(added, "a", "0")}, false},
		{"no version of a delete", from, []watch.Event{event(deleted, "a", ""), event(deleted, "b", "")}, false},
		{"an event from within the initial state", streamed, []watch.Event{event(added, "a", "5"), endOfList("9"), event(added, "c", "8")}, false},
		{"a watch from now", source.WatchOptions{}, []watch.Event{event(added, "a", "5"), event(added, "b", "3"), event(modified, "b", "6"), labelledEvent(modified, "b", "6", "1")}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream, _, versions := open(t, tt.o, tt.events...)
			if _, err := stream.Next(); err != nil {
				t.Fatal(err)
			}
			if versions.Trusted() != tt.trusted {
				t.Errorf("trusted is %v, want %v", versions.Trusted(), tt.trusted)
			}
		})
	}
}

// TestStreamTrustInCache: states that the source has forgotten are looked up in the cache.
func TestStreamTrustInCache(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cached  metav1.Object
		event   watch.Event
		trusted bool
	}{
		{"a state before the cached one", pod("a", "3"), event(modified, "a", "2"), false},
		{"the cached state", pod("a", "3"), event(modified, "a", "3"), true},
		{"another state of the cached version", pod("a", "3"), labelledEvent(modified, "a", "3", "1"), false},
		{"a delete of the cached version", pod("a", "3"), event(deleted, "a", "3"), false},
		{"a state after the cached one", pod("a", "3"), event(modified, "a", "4"), false},
		{"nothing cached", nil, event(modified, "a", "3"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream, _, versions := open(t, source.WatchOptions{Version: "9"}, tt.event)
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

// TestVersionsCompare: versions are compared as numbers until they are not trusted.
func TestVersionsCompare(t *testing.T) {
	var v Versions
	if !v.Trusted() {
		t.Error("the zero value does not trust")
	}
	for _, tt := range []struct {
		a, b  string
		order int
		ok    bool
	}{
		{"9", "10", -1, true}, {"10", "10", 0, true}, {"11", "10", 1, true},
		{"", "1", 0, false}, {"x", "1", 0, false},
	} {
		if order, ok := v.Compare(tt.a, tt.b); order != tt.order || ok != tt.ok {
			t.Errorf("Compare(%q, %q) is %d, %v, want %d, %v", tt.a, tt.b, order, ok, tt.order, tt.ok)
		}
	}
	v.Distrust()
	if order, ok := v.Compare("9", "10"); order != 0 || ok || v.Trusted() {
		t.Errorf("Compare is %d, %v although the versions are not trusted", order, ok)
	}
}
