package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

func TestP13_StateSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		want  health.State
		pages bool // a streamed list that is refused twice is read in pages
	}{
		"forbidden":         {errForbidden, health.StateForbidden, true},
		"unauthorized":      {status(401, "Unauthorized"), health.StateForbidden, true},
		"no such resource":  {errNotFound, health.StateNoSuchResource, false},
		"wrong scope":       {&source.Error{Op: "list", Phase: source.Connecting, Err: source.ErrWrongScope}, health.StateNoSuchResource, false},
		"server error":      {errInternal, health.StateBackoff, true},
		"too many requests": {errTooMany(0), health.StateBackoff, false},
		"unreachable":       {errRefused, health.StateBackoff, false},
		"connection broken": {errCut, health.StateBackoff, false},
	} {
		answers := []answer{failed("stream", test.err), failed("stream", test.err), listed()}
		if test.pages {
			answers = append(answers[:2], onePage, watched("5"))
		}
		t.Run(name, scenario{answers: answers, queue: []string{replaced5}, during: func(r *Reflector[object], _ *script) {
			h := r.Health()
			if h.State != test.want || !errors.Is(h.LastError, test.err) || h.Failures != 1 || !h.RetryAt.Equal(time.Now().Add(800*time.Millisecond)) {
				t.Errorf("health is %+v, want state %s", h, test.want)
			}
			after(800 * time.Millisecond)
			if h := r.Health(); h.Failures != 2 || !h.RetryAt.Equal(time.Now().Add(1600*time.Millisecond)) {
				t.Errorf("after the second failure health is %+v", h)
			}
			after(1600 * time.Millisecond)
			if h := r.Health(); h.State != health.StateWatching || h.Failures != 0 || h.LastError == nil || !h.RetryAt.IsZero() {
				t.Errorf("after it has healed health is %+v", h)
			}
		}}.run)
	}
}

// TestOptionalResource has a server that does not have the resource, at first or for a while.
func TestOptionalResource(t *testing.T) {
	const emptied = "replace , new history:"
	optional, missing := Options[object]{Optional: true}, failed("stream", errNotFound)
	vanished := func(requests int) []answer {
		return append([]answer{listed(fails(errCut)), failed("watch 5", errNotFound)}, slices.Repeat([]answer{missing}, requests)...)
	}
	state := func(r *Reflector[object], want health.State, version string) {
		if h := r.Health(); h.State != want || h.Version != version || h.LastError == nil {
			t.Errorf("health is %+v", h)
		}
	}
	scenarios(t, map[string]scenario{
		"missing at first: empty at once": {
			o: optional, answers: []answer{missing, missing, missing, listed()}, queue: []string{emptied, replaced5},
			during: func(r *Reflector[object], _ *script) { state(r, health.StateNoSuchResource, "") },
			check:  func(t *testing.T, r *Reflector[object], _ *script, _ *journal) { state(r, health.StateWatching, "5") },
		},
		"missing for a minute: stays": {
			o: optional, answers: vanished(5), pass: time.Minute, queue: []string{replaced5},
		},
		"missing for two minutes: empty": {
			o: optional, answers: vanished(7), pass: 2 * time.Minute, queue: []string{replaced5, emptied},
			check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
				state(r, health.StateNoSuchResource, "")
			},
		},
		"missing for longer, and back": {
			o: optional, answers: append(vanished(20), listed()), pass: 20 * time.Minute, queue: []string{replaced5, emptied, replaced5},
		},
		// It was missing for two minutes, but another answer came in between.
		"missing for a moment, and again": {
			o: optional, answers: append(append(append(vanished(4), failed("stream", errInternal)), missing, missing), listed()),
			queue: []string{replaced5, replaced5},
		},
		"missing, and the queue is closed: the end": {
			o: optional, j: &journal{refuse: delta.ErrClosed}, answers: []answer{missing},
			queue: []string{emptied},
		},
		"not optional: stays": {answers: append(vanished(20), listed()), pass: 20 * time.Minute, queue: []string{replaced5, replaced5}},
	})
}

// TestHistoryHasStatesWithoutAttempts has a server that refuses many requests.
func TestHistoryHasStatesWithoutAttempts(t *testing.T) {
	answers := slices.Repeat([]answer{failed("stream", errTooMany(0))}, 5)
	scenario{
		answers: append(answers, listed()), queue: []string{replaced5},
		during: func(r *Reflector[object], _ *script) {
			after(5 * time.Second)
			h := r.Health()
			if h.Failures < 2 || time.Since(h.FailingSince) != 5*time.Second {
				t.Errorf("%d failures since %v, want some for 5s", h.Failures, h.FailingSince)
			}
		},
		check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
			var states []string
			h := r.Health()
			for i, transition := range h.History {
				states = append(states, string(transition.State))
				if i > 0 && transition.At.Before(h.History[i-1].At) {
					t.Errorf("the history goes back: %v", h.History)
				}
			}
			same(t, "history", states, "Pending", "Listing", "Backoff", "Watching")
			if !h.FailingSince.IsZero() {
				t.Errorf("it is failing since %v", h.FailingSince)
			}
		},
	}.run(t)
}

// TestFailuresAreReportedByStep has every step of list and watch fail once.
func TestFailuresAreReportedByStep(t *testing.T) {
	var reported []string
	denied, busy := status(403, "Forbidden"), errTooMany(1)
	warnings := &strings.Builder{} // there are none, because OnFailure is called instead
	scenario{
		o: Options[object]{
			OnFailure: func(ended Step, err error) {
				reported = append(reported, fmt.Sprintf("%s: %v", ended, err))
			},
			Logger: slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn})),
		},
		answers: []answer{
			failed("stream", denied), failed("stream", source.ErrStreamedListRefused), failed(first, busy), page(first, "5", "", ""),
			failed("watch 5", denied), watched("5", fails(busy)), watched("5"),
		},
		check: func(t *testing.T, _ *Reflector[object], _ *script, _ *journal) {
			same(t, "reported", reported, fmt.Sprint("streamed list: ", denied), fmt.Sprint("list: ", busy),
				fmt.Sprint("opening the watch: ", denied), fmt.Sprint("watch: ", busy))
			same(t, "warnings", []string{warnings.String()}, "")
		},
	}.run(t)
}

// TestErrorsNameLongTextsInPart has a server set back from a version of a million digits, and a
// transform fail on an object whose name is a megabyte long.
func TestErrorsNameLongTextsInPart(t *testing.T) {
	const most = 4 << 10
	reported, log := 0, &strings.Builder{}
	o := Options[object]{
		Logger:    slog.New(slog.NewTextHandler(log, nil)),
		OnFailure: func(_ Step, err error) { reported = max(reported, len(err.Error())) },
		Transform: func(o object) (object, error) {
			if len(o.name) > 1 {
				return o, errors.New("no")
			}
			return o, nil
		},
	}
	version, name := strings.Repeat("9", 1<<20), strings.Repeat("a", 1<<20)
	scenario{
		o: o, answers: []answer{listed(sends("~"+name+"@6 ~a@"+version), sends("*7")), checked("8"), streamed()},
		check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
			h := r.Health()
			if !errors.Is(h.LastError, errRewound) || len(h.LastError.Error()) > most || h.LastTransformError == nil || len(h.LastTransformError.Error()) > most {
				t.Errorf("the last errors are %.100v and %.100v", h.LastError, h.LastTransformError)
			}
		},
		pass: 10 * time.Second,
	}.run(t)
	if reported > most || log.Len() > 5*most {
		t.Errorf("errors of %d bytes are reported, and %d bytes are logged", reported, log.Len())
	}
}

// lines is a log handler that keeps the messages.
type lines struct {
	mu   sync.Mutex
	kept []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "state" || a.Key == "after" {
			text += " " + a.Value.String()
		}
		return true
	})
	l.kept = append(l.kept, text)
	return nil
}

func TestP18_LastingFailureIsLoggedOncePerStateAndAtAHeartbeat(t *testing.T) {
	answers := slices.Repeat([]answer{failed(first, errForbidden)}, 60)
	log := &lines{}
	scenario{
		o:       Options[object]{Transport: source.Transport{NoStreamedLists: true}, Logger: slog.New(log)},
		answers: append(answers, failed(first, errInternal), onePage, watched("5")), pass: 35 * time.Minute,
		check: func(t *testing.T, _ *Reflector[object], _ *script, _ *journal) {
			log.mu.Lock()
			defer log.mu.Unlock()
			if n := len(log.kept); n < 4 || n > 6 {
				t.Fatalf("%d lines in half an hour of failure: %q", n, log.kept)
			}
			same(t, "log", []string{log.kept[0], log.kept[len(log.kept)-2]},
				"list and watch failed Forbidden", "list and watch failed Backoff")
			if last := log.kept[len(log.kept)-1]; !strings.HasPrefix(last, "list and watch recovered 2") {
				t.Errorf("the last line is %q, want the recovery after more than 20 minutes", last)
			}
		},
	}.run(t)
}

func TestP20_RunThatCannotBeginIsAnError(t *testing.T) {
	scenario{answers: []answer{listed()}, queue: []string{replaced5}, during: func(r *Reflector[object], _ *script) {
		if err := r.Run(t.Context()); !errors.Is(err, ErrRanAlready) || !strings.Contains(err.Error(), "things.v1") {
			t.Errorf("the second Run returned %v", err)
		}
	}}.run(t)
	invalid := Options[object]{Name: "things.v1", Transport: source.Transport{PageSize: -1}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := New(&script{t: t}, &journal{}, invalid).Run(ctx)
	if text := fmt.Sprint(err); !strings.Contains(text, "things.v1: ") ||
		!strings.Contains(text, "PageSize") {
		t.Errorf("with an option that cannot be used Run returned %v", err)
	}
}

func TestP20_WrongObjectsAreDroppedAndCounted(t *testing.T) {
	wrong := source.Event[object]{Type: source.Added, Item: source.Item[object]{Err: &source.WrongObjectError{Got: "v1 Pod", Want: "v1 Thing"}}}
	accept := func(i source.Item[object], deleted bool) error {
		if !deleted && i.Version >= "6" {
			return errors.New("it does not belong here")
		}
		return nil
	}
	scenario{
		o: Options[object]{Accept: accept, Known: knows("a@3")},
		answers: []answer{streamed(
			read{events: slices.Insert(parse("+a@3 +x@6 =6"), 2, wrong)},
			read{after: time.Second, events: slices.Insert(parse("~x@7 ~a@8"), 1, wrong)},
		)},
		during: func(r *Reflector[object], _ *script) {
			if err := r.Health().LastDropped; err != wrong.Err {
				t.Errorf("dropped without a name: %v", err)
			}
		},
		queue: []string{"replace 6: a@3 as known", "push 8: gone x@7 gone a@8"},
		check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
			h := r.Health()
			if h.Dropped != 5 || h.LastDropped == nil || !strings.Contains(h.LastDropped.Error(), "object a: it does not belong here") {
				t.Errorf("dropped %d, the last: %v", h.Dropped, h.LastDropped)
			}
		},
	}.run(t)
}

func TestP11_FailedTransformLeavesThePreviousState(t *testing.T) {
	transform := func(o object) (object, error) {
		switch o.version {
		case "3", "7":
			o.note = " small"
			return o, nil
		case "6":
			panic("I cannot bear it")
		default:
			return o, errors.New("it is odd")
		}
	}
	scenario{
		o:       Options[object]{Transform: transform, Known: knows("a@2")},
		answers: []answer{streamed(sends("+a@4 ~b@4 +c@3 =5"), sends("~c@6 ~c@7 -a@8 -b@9"))},
		queue:   []string{"replace 5, a b stay: c@3 small", "push 9: unusable c@6 set c@7 small gone a@8 gone b@9"},
		check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
			h := r.Health()
			if h.TransformErrors != 5 || h.LastTransformError == nil || !strings.Contains(h.LastTransformError.Error(), "transform of b") {
				t.Errorf("%d transform errors, the last: %v", h.TransformErrors, h.LastTransformError)
			}
		},
	}.run(t)
}

// TestP13_Listed looks at the number of listed objects after lists that failed, and while a list of slots
// begins anew without pages.
func TestP13_Listed(t *testing.T) {
	t.Run("of slots, without pages", listedUnpaged(t).run)
	for name, answers := range map[string][]answer{
		"streamed": {streamed(sends("+a@3 +bb@4"), sendsAfter(time.Second, "+cc@4"), failsAfter(time.Second, errInternal)), streamed()},
		"missing":  {streamed(sends("+a@3 +bb@4"), sendsAfter(time.Second, "+cc@4"), failsAfter(time.Second, errNotFound)), streamed()},
	} {
		t.Run(name, scenario{
			answers: answers, o: Options[object]{Optional: name == "missing"}, pass: time.Minute,
			during: func(r *Reflector[object], _ *script) {
				after(2100 * time.Millisecond)
				if h := r.Health(); h.Listed != 0 {
					t.Errorf("%s: %d objects are on their way in %s", name, h.Listed, h.State)
				}
			},
		}.run)
	}
}

func listedUnpaged(t *testing.T) scenario {
	l := &lists{takes: 5 * time.Second, pages: []answer{page("", "6", "+bb@2 +ccc@3", "next"), {err: errExpired}, page("", "6", "+bb@2 +ccc@3", "next2"), page("", "6", "+dddd@4", "")}}
	return scenario{
		o: Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a"))}, answers: []answer{listed()},
		during: func(r *Reflector[object], _ *script) {
			_ = merges(t, r, l, slotsOf("bb", "ccc", "dddd"))
			most := 0
			for range 30 {
				after(time.Second)
				most = max(most, r.Health().Listed)
			}
			if most > 3 {
				t.Errorf("%d of 3 objects are listed", most)
			}
		},
	}
}
