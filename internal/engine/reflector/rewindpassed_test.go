package reflector

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// lookedAt answers a check of the server's version with the objects of a text.
func lookedAt(version, items string) answer { return page(look, version, items, "") }

// TestP16_ServerThatHasPassedTheReachedVersion has the server set back, and write new states until
// its version is beyond the reached one.
func TestP16_ServerThatHasPassedTheReachedVersion(t *testing.T) {
	// away is 12 s without the server, after some events.
	away := func(events, from string, then ...answer) []answer {
		before := []answer{listed(sends(events), fails(errCut))}
		for range 3 {
			before = append(before, failed("watch "+from, errRefused))
		}
		return append(before, then...)
	}
	changed := func(then ...answer) []answer { return away("~a@6 ~b@8", "8", then...) }
	another := lookedAt("20", "+b@8")
	another.page.Items[0].UID = "another"
	noUID := parse("~b@8")
	noUID[0].UID = ""
	known := Options[object]{Known: knows("a@6", "b@8")}
	pushed := "push 8: set a@6 set b@8"
	narrowed := func(keys ...string) checker {
		return func(t *testing.T, _ *Reflector[object], s *script, _ *journal) {
			same(t, "keys asked for", s.keys, keys...)
		}
	}
	// ab is a holding of the one slot of a and b. The end of an object comes without its key while its slot is not held.
	ab := func() Options[object] { return Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a", "b"))} }
	newestIsA := func() Options[object] {
		o := Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a", "bb"))}
		o.Newest = func(holds func(key, uid string) bool) (key, version, uid string) {
			if holds("a", "uid-a") {
				return "a", "3", "uid-a"
			}
			return "", "", ""
		}
		return o
	}
	endsUnselected := func(after time.Duration, version string) read {
		return read{after: after, events: []source.Event[object]{
			{Type: source.Deleted, Unselected: true, Item: source.Item[object]{Version: version}},
		}}
	}
	slotGoesFor := func(d time.Duration) func(*Reflector[object], *script) {
		return func(r *Reflector[object], _ *script) {
			r.o.Slots.Remove(slotsOf("b"))
			after(d)
			if err := r.o.Slots.Add(context.Background(), slotsOf("b")); err != nil {
				t.Error(err)
			}
		}
	}
	scenarios(t, map[string]scenario{
		"list with an older state": {
			o: known, answers: []answer{listed(sends("~b@8"), fails(errExpired)), streamed(sends("+a@3 +b@9 =20"), sends("*21"))},
			queue: []string{replaced5, "push 8: set b@8", "replace 20, new history: a@3 b@9", "bookmark 21"},
		},
		"list with an older state, whose other objects are cached": {
			asks: true, o: known,
			answers: []answer{listed(sends("~b@8"), fails(errExpired)), streamed(sends("+a@3 +b@8 =20")), streamed(sends("+a@3 +b@8 =20"))},
			queue:   []string{replaced5, "push 8: set b@8", "replace 20, new history: a@3 b@8"},
		},
		"the same after a minute without the server": { // the next list does not wait
			asks: true, o: known,
			answers: append(slices.Concat([]answer{listed(sends("~b@8"), fails(errCut))},
				slices.Repeat([]answer{failed("watch 8", errRefused)}, 6)),
				failed("watch 8", errExpired), streamed(sends("+a@3 +b@8 =20")), streamed(sends("+a@3 +b@8 =20"))),
			during: func(_ *Reflector[object], s *script) {
				for len(s.requests()) < 9 {
					after(time.Second)
				}
				after(time.Second)
				if n := len(s.requests()); n != 10 {
					t.Errorf("%d requests", n)
				}
			},
			queue: []string{replaced5, "push 8: set b@8", "replace 20, new history: a@3 b@8"},
		},
		// A stream may begin with a state that its server had, and bring the later ones.
		"streamed list that catches up": {
			o: known, answers: []answer{listed(sends("~b@8"), fails(errExpired)), streamed(sends("+a@3 +b@7"), sends("~a@6 ~b@8 =20"))},
			queue: []string{replaced5, "push 8: set b@8", "replace 20: a@3 b@7 a@6 as known b@8 as known"},
		},
		"look at an older state of the last object": {
			answers: changed(watched("8"), lookedAt("20", "+b@2"), streamed(sends("+b@2 =20"))),
			queue:   []string{replaced5, pushed, "replace 20, new history: b@2"}, check: narrowed("b"),
		},
		"look at the last object": {
			answers: changed(watched("8"), lookedAt("20", "+b@8")), queue: []string{replaced5, pushed}, check: narrowed("b"),
		},
		"look at another object of its name, at the same version": {
			answers: changed(watched("8"), another, streamed(sends("+b@8 =20"))),
			queue:   []string{replaced5, pushed, "replace 20, new history: b@8"}, check: narrowed("b"),
		},
		"look at it, at the version of its end": {
			answers: away("-b@9", "5", watched("5"), lookedAt("20", "+b@9"), streamed(sends("+b@9 =20"))),
			queue:   []string{replaced5, "push 9: delete b@9", "replace 20, new history: b@9"}, check: narrowed("b"),
		},
		"look at the last object, of which no UID has come": {
			answers: append([]answer{listed(read{events: noUID}, fails(errCut))}, append(slices.Repeat([]answer{failed("watch 8", errRefused)}, 3),
				watched("8"), lookedAt("20", "+b@8"))...),
			queue: []string{replaced5, "push 8: set b@8"}, check: narrowed("b"),
		},
		"look after a delete, while the slot of the newest object has gone": {
			o: newestIsA(), answers: away("-bb@9", "5", watched("5"), lookedAt("20", "")),
			during: func(r *Reflector[object], _ *script) {
				after(5 * time.Second)
				r.o.Slots.Remove(slotsOf("a"))
			},
			queue: []string{replaced5, "push 9: delete bb@9"}, check: narrowed("bb"),
		},
		// What comes after a check that failed may be of the new history.
		"look that fails, and the next one": {
			answers: changed(watched("8", sendsAfter(40*time.Second, "+c@19")), failed(look, errTooMany(1)), lookedAt("20", "+b@2"), streamed(sends("+b@2 +c@19 =20"))),
			queue:   []string{replaced5, pushed, "push 19: set c@19", "replace 20, new history: b@2 c@19"}, check: narrowed("b", "b"),
		},
		"look that fails, and later states of the object": {
			answers: changed(watched("8", sendsAfter(10*time.Second, "~b@19"), sendsAfter(30*time.Second, "+c@20")), failed(look, errTooMany(1)), lookedAt("20", "+b@19")),
			queue:   []string{replaced5, pushed, "push 19: set b@19", "push 20: set c@20"}, check: narrowed("b", "b"),
		},
		"look that fails, and the end of the object": {
			answers: changed(watched("8", sendsAfter(10*time.Second, "-b@19"), sendsAfter(30*time.Second, "+c@20"), sendsAfter(time.Second, "*22")), failed(look, errTooMany(1)), lookedAt("20", "")),
			queue:   []string{replaced5, pushed, "push 19: delete b@19", "push 20: set c@20", "bookmark 22"}, check: narrowed("b", "b"),
		},
		"look that fails, and the end of the object while its slot was not held": {
			o: ab(),
			answers: append([]answer{listed(sends("~b@8"), fails(errCut))}, append(slices.Repeat([]answer{failed("watch 8", errRefused)}, 3),
				watched("8", endsUnselected(10*time.Second, "19"), sendsAfter(30*time.Second, "*20"), sendsAfter(time.Second, "~a@22")), failed(look, errTooMany(1)), lookedAt("20", ""))...),
			during: func(r *Reflector[object], s *script) {
				for len(s.requests()) < 6 {
					after(time.Second)
				}
				slotGoesFor(20*time.Second)(r, s)
			},
			queue: []string{replaced5, "push 8: set b@8", "bookmark 19", "bookmark 20", "push 22: set a@22"}, check: narrowed("b"),
		},
		"look at a later state of it":                            {answers: changed(watched("8"), lookedAt("20", "+b@15"))},
		"look at another object, of a server that cannot narrow": {answers: changed(watched("8"), page(look, "20", "+a@1", "more"))},
		"look that is refused": {
			answers: changed(watched("8"), failed(look, status(400, metav1.StatusReasonBadRequest)), checked("20")), check: narrowed("b"),
		},
		"look without the last object, which is gone by an event": {
			answers: changed(watched("8", sendsAfter(time.Second, "-b@15"), sendsAfter(time.Second, "*21")), lookedAt("20", "")),
			queue:   []string{replaced5, pushed, "push 15: delete b@15", "bookmark 21"},
		},
		"look without the last object, which no event ends": {
			answers: changed(watched("8", sendsAfter(time.Second, "+c@19"), sendsAfter(time.Second, "*21")), lookedAt("20", ""), streamed(sends("+c@19 =22"))),
			queue:   []string{replaced5, pushed, "push 19: set c@19", "bookmark 21", "replace 22, new history: c@19"},
		},
		// Without bookmarks no watch shows that it has passed the version of a look.
		"two looks without the last object, in four minutes of a watch": {
			answers: changed(watched("8", sendsAfter(time.Second, "+c@19"), failsAfter(leastQuietFirst, io.EOF)), lookedAt("20", ""),
				lookedAt("20", ""), streamed(sends("+c@19 =22"))),
			queue: []string{replaced5, pushed, "push 19: set c@19", "replace 22: c@19"}, check: narrowed("b", "b"),
		},
		"two looks without the last object, and a list with an older state": {
			o: known,
			answers: away("~b@8", "8", watched("8", failsAfter(leastQuietFirst, io.EOF)), lookedAt("20", ""), lookedAt("20", ""),
				streamed(sends("+a@3 =22"))),
			queue: []string{replaced5, "push 8: set b@8", "replace 22, new history: a@3"}, check: narrowed("b", "b"),
		},
		"two looks without the last object, in less than four minutes of a watch": {
			answers: changed(watched("8", sendsAfter(time.Second, "+c@19"), failsAfter(leastQuietFirst-2*time.Second, io.EOF)), lookedAt("20", ""),
				lookedAt("20", ""), watched("19")),
			queue: []string{replaced5, pushed, "push 19: set c@19"}, check: narrowed("b", "b"),
		},
		"looks without the last object, with watches that do not end in order": {
			answers: changed(watched("8", failsAfter(2*time.Second, io.EOF)), lookedAt("20", ""),
				lookedAt("20", ""), watched("8"), lookedAt("20", ""), watched("8", failsAfter(4*time.Minute, errCut)), watched("8"), lookedAt("20", "")),
			pass:  11 * time.Minute,
			queue: []string{replaced5, pushed}, check: narrowed("b", "b", "b", "b"),
		},
		"two looks without the last object, of which an object has come meanwhile": {
			answers: changed(watched("8", sendsAfter(time.Second, "+b@19"), failsAfter(leastQuietFirst, io.EOF)), lookedAt("20", ""), watched("19")),
			queue:   []string{replaced5, pushed, "push 19: set b@19"}, check: narrowed("b"),
		},
		"look without the last object, which was deleted": {
			answers: away("-b@9", "5", watched("5", sendsAfter(time.Second, "*21")), lookedAt("20", "")),
			queue:   []string{replaced5, "push 9: delete b@9", "bookmark 21"}, check: narrowed("b"),
		},
		"look without an object of slots, of which a read has shown an older state": {
			o:       Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a", "b", "c"))},
			pass:    time.Minute,
			answers: []answer{listed(sends("~b@8")), lookedAt("20", ""), watched("8", sendsAfter(time.Second, "*21")), streamed(sends("+c@19 =22"))},
			during: func(r *Reflector[object], _ *script) {
				after(time.Minute)
				r.SuspectWatch("b", "8", "uid-b")
			},
			queue: []string{replaced5, "push 8: set b@8", "bookmark 21", "replace 22, new history: c@19"}, check: narrowed("b"),
		},
		"look without the last object, which ended while its slot was not held": {
			o: ab(),
			answers: append([]answer{listed(sends("~b@8"), endsUnselected(time.Second, "15"), failsAfter(time.Minute, errCut))},
				append(slices.Repeat([]answer{failed("watch 8", errRefused)}, 3),
					watched("8", sendsAfter(20*time.Second, "*21")), lookedAt("20", ""))...),
			during: slotGoesFor(10 * time.Second),
			queue:  []string{replaced5, "push 8: set b@8", "bookmark 15", "bookmark 21"}, check: narrowed(),
		},
		"look without the last object, whose slot is not held until its end": {
			o: ab(),
			answers: []answer{
				listed(sends("~b@8")), lookedAt("20", ""),
				watched("8", endsUnselected(10*time.Second, "19"), sendsAfter(time.Minute, "*21")),
			},
			during: func(r *Reflector[object], s *script) {
				after(time.Minute)
				r.SuspectWatch("b", "8", "uid-b")
				after(5 * time.Second)
				slotGoesFor(20*time.Second)(r, s)
			},
			pass:  time.Minute,
			queue: []string{replaced5, "push 8: set b@8", "bookmark 19", "bookmark 21"}, check: narrowed("b"),
		},
		"look at the deleted object": {
			answers: away("-b@9", "5", watched("5"), lookedAt("20", "+b@2"), streamed(sends("+b@2 =20"))),
			queue:   []string{replaced5, "push 9: delete b@9", "replace 20, new history: b@2"},
		},
	})
}
