package reflector

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/health"
)

// TestDoubtBeginsTheWatchAnew has a read show that the watch is behind, or that the server was set
// back. A watch that has just begun goes on.
func TestDoubtBeginsTheWatchAnew(t *testing.T) {
	suspects := func(at time.Duration, version string) func(*Reflector[object], *script) {
		return func(r *Reflector[object], _ *script) {
			r.SuspectWatch("a", version, "uid-a") // too early
			after(at)
			r.SuspectWatch("a", version, "uid-a")
			r.SuspectWatch("a", version, "uid-a")
		}
	}
	scenarios(t, map[string]scenario{
		"too early": {answers: []answer{listed()}, during: suspects(20*time.Second, "")},
		"behind": {
			answers: []answer{listed(sendsAfter(25*time.Second, "*6")), watched("6")}, during: suspects(30*time.Second, ""),
			check: unless(func(h health.Watch) bool { return !errors.Is(h.LastError, errSuspected) }),
		},
		"of two watches in a row": {
			answers: []answer{
				listed(sendsAfter(25*time.Second, "*6")), watched("6", sendsAfter(25*time.Second, "*7")), streamed(sends("+b@7 =9"), sendsAfter(25*time.Second, "*10")),
				watched("10"),
			},
			during: func(r *Reflector[object], s *script) {
				for range 3 {
					suspects(31*time.Second, "")(r, s)
				}
			},
			pass: 2 * time.Minute, queue: []string{replaced5, "bookmark 6", "bookmark 7", "replace 9: b@7", "bookmark 10"},
			check: unless(func(h health.Watch) bool { return h.Lists != 2 }),
		},
		"of another history": {
			answers: []answer{listed(sendsAfter(25*time.Second, "~b@6")), lookedAt("20", "+a@2"), streamed(sends("+a@2 =20"))},
			during:  suspects(30*time.Second, "3"), queue: []string{replaced5, "push 6: set b@6", "replace 20, new history: a@2"},
			check: func(t *testing.T, _ *Reflector[object], s *script, _ *journal) { same(t, "keys", s.keys, "a") },
		},
		"of an object that ends": {
			answers: []answer{
				listed(sendsAfter(25*time.Second, "~b@6"), sendsAfter(time.Second, "-a@7"), sendsAfter(time.Second, "*8"), failsAfter(2*time.Minute, errCut)),
				watched("8", sendsAfter(time.Second, "~b@21")), page(look, "20", "+b@6", ""),
			},
			during: func(r *Reflector[object], _ *script) { r.SuspectWatch("a", "3", "uid-a") }, // too early for the watch to end
			queue:  []string{replaced5, "push 6: set b@6", "push 7: delete a@7", "bookmark 8", "push 21: set b@21"},
		},
		"of another history of the collection, while a young watch goes on": {
			answers: []answer{listed(sendsAfter(25*time.Second, "*6")), lookedAt("4", ""), streamed(sends("=4"))},
			during:  func(r *Reflector[object], _ *script) { r.SuspectWatch("x", "5", "") },
			pass:    time.Minute, queue: []string{replaced5, "bookmark 6", "replace 4, new history:"},
		},
		"of this history of the collection": {
			answers: []answer{listed(sendsAfter(25*time.Second, "*6"), sendsAfter(time.Minute, "~b@7")), lookedAt("6", "")},
			during:  func(r *Reflector[object], _ *script) { r.SuspectWatch("x", "5", "") },
			pass:    2 * time.Minute, queue: []string{replaced5, "bookmark 6", "push 7: set b@7"},
		},
		"of this history": {
			answers: []answer{listed(sendsAfter(25*time.Second, "~b@6")), lookedAt("20", "+a@7"), watched("6")},
			during:  suspects(30*time.Second, "3"),
		},
	})
}

// TestCatchUp: the collection is listed in pages, in the place of the watch, and not twice within ten
// seconds, nor if it has reached the version.
func TestCatchUp(t *testing.T) {
	again := func(wait time.Duration, versions ...string) func(*Reflector[object], *script) {
		return func(r *Reflector[object], _ *script) {
			for _, version := range versions {
				after(wait)
				r.CatchUp(version)
			}
		}
	}
	listed9 := page(later, "9", "+b@7", "")
	fails429 := answer{expect: later, err: apierrors.NewTooManyRequests("busy", 0)}
	slowly := listed9
	slowly.signs = []time.Duration{15 * time.Second}
	scenarios(t, map[string]scenario{
		"what came and went": {
			answers: []answer{listed(), listed9, watched("9")}, during: again(time.Second, "8"), queue: []string{replaced5, "replace 9: b@7"},
		},
		"twice at once": {
			answers: []answer{listed(), listed9, watched("9")}, during: again(time.Second, "8", "11"), pass: time.Minute,
		},
		"twice": {
			answers: []answer{listed(), listed9, watched("9"), page(later, "11", "+b@7", ""), watched("11")},
			during:  again(11*time.Second, "8", "11"), queue: []string{replaced5, "replace 9: b@7", "replace 11: b@7"},
		},
		"reached": {answers: []answer{listed()}, during: again(11*time.Second, "5", "4", "x", "")},
		"refused": {
			answers: []answer{listed(), fails429, watched("5")}, during: again(time.Second, "8"), pass: time.Minute,
			check: unless(func(h health.Watch) bool { return h.State != health.StateWatching }),
		},
		"while it is listed": {
			answers: []answer{listed(), slowly, watched("9")},
			during:  again(11*time.Second, "8", "9"), pass: time.Minute,
		},
	})
}
