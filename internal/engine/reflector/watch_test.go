package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

func TestP18_WatchResumesFromTheLastVersion(t *testing.T) {
	const moment = 800 * time.Millisecond
	for name, test := range map[string]struct {
		end  error
		wait time.Duration
	}{
		"orderly end of a short watch that brought something": {io.EOF, moment},
		"connection cut": {errCut, moment},
		"server error":   {errInternal, moment},
		"forbidden":      {errForbidden, moment},
		"Retry-After":    {errTooMany(7), 7 * time.Second},
		"cannot decode":  {errDecoding, moment},
	} {
		t.Run(name, scenario{
			answers: []answer{listed(sends("~a@7"), fails(test.end)), watched("7")},
			queue:   []string{replaced5, "push 7: set a@7"},
			during: func(_ *Reflector[object], s *script) {
				after(test.wait - time.Millisecond)
				same(t, "requests before the wait is over", s.requests(), "stream")
				after(2 * time.Millisecond)
				same(t, "requests", s.requests(), "stream", "watch 7")
			},
		}.run)
	}
}

// TestP01_GroupOfDeletesIsResumedFromBeforeIt has a server delete several objects at one
// version, as one does with events whose lease ends (kubernetes/kubernetes#110210), and the
// watch end after some of them.
func TestP01_GroupOfDeletesIsResumedFromBeforeIt(t *testing.T) {
	cut := fails(errCut)
	for name, test := range map[string]struct {
		next  string // the version that the next watch begins at
		reads []read
	}{
		"orderly end after the first": {"7", []read{sends("~d@7 -a@9"), eof}},
		"cut after the first":         {"7", []read{sends("~d@7 -a@9"), cut}},
		"ERROR event after the first": {"7", []read{sends("~d@7 -a@9"), fails(errInternal)}},
		"in two batches":              {"7", []read{sends("~d@7"), sends("-a@9"), sends("-b@9"), cut}},
		"with nothing before":         {"5", []read{sends("-a@9 -b@9"), cut}},
		"after a bookmark":            {"8", []read{sends("*8 -a@9"), cut}},
		"after another group":         {"6", []read{sends("-x@6 -y@6 -a@9 -b@9"), cut}},
		"closed by a bookmark":        {"9", []read{sends("-a@9 -b@9"), sends("*9"), cut}},
		"closed by a later bookmark":  {"12", []read{sends("-a@9 -b@9"), sends("*12"), cut}},
		"closed by a later version":   {"10", []read{sends("-a@9 -b@9"), sends("+a@10"), cut}},
	} {
		answers := []answer{listed(test.reads...), watched(test.next, sends("-a@9 -b@9 -c@9"))}
		check := func(t *testing.T, _ *Reflector[object], _ *script, j *journal) {
			if text := strings.Join(j.read(), "; "); !strings.Contains(text, "delete c@") {
				t.Errorf("the rest of the group was not handed on: %s", text)
			}
		}
		t.Run(name, scenario{answers: answers, check: check}.run)
		// As after events in another order, which show that versions do not order states.
		distrustful := Options[object]{Compare: func(string, string) (int, bool) { return 0, false }}
		t.Run(name+", without an order", scenario{o: distrustful, answers: answers, check: check}.run)
	}
	t.Run("through several watches", scenario{
		answers: []answer{
			listed(sends("-a@9"), cut), watched("5", sends("-a@9"), sends("-b@9"), cut),
			watched("5", sends("-a@9"), sends("-b@9"), sends("-c@9"), sends("*9"), cut), checked("9"), watched("9"),
		},
		check: unless(func(h health.Watch) bool {
			return h.Version != "9"
		}),
	}.run)
	// Events that a server sends after that in another order are no sign of a rewind.
	t.Run("then events out of order", scenario{
		answers: []answer{listed(sends("-b@9"), cut), watched("5", sends("-b@9 +c@12"), sends("-a@11 *12")), checked("12")},
		queue:   []string{replaced5, "push 9: delete b@9", "push 12: delete b@9 set c@12", "push 12: delete a@11"},
	}.run)
}

// TestP04_ResumedReplaysAreHandedOnOnce has a server send events in another order and end the watch,
// so that the next one brings again events that were handed on. Where versions do not order states,
// the queue cannot tell these replays from new states.
func TestP04_ResumedReplaysAreHandedOnOnce(t *testing.T) {
	scenario{
		o: Options[object]{Compare: func(string, string) (int, bool) { return 0, false }},
		answers: []answer{
			listed(sends("~a@9 ~b@8 -a@10"), fails(errCut)),
			watched("8", sends("~a@9 -a@10 +a@11"), sends("~b@12")),
		},
		queue: []string{replaced5, "push 10: set a@9 set b@8 delete a@10", "push 11: set a@11", "push 12: set b@12"},
	}.run(t)
}

// TestP18_EndsThatLeadToAList has watches end so that they cannot be resumed, or not again.
func TestP18_EndsThatLeadToAList(t *testing.T) {
	ends := func(from string, reads ...read) answer { return watched(from, reads...) }
	refused := func(err error) []answer { // asked for its version before the last attempt
		again := failed("watch 5", err)
		return []answer{listed(fails(errCut)), again, again, checked("5"), again, listed9}
	}
	invalid := failed("watch 5", status(422, metav1.StatusReasonInvalid))
	internal, quiet, later := fails(errInternal), sends("*5"), failsAfter(2*time.Second, errInternal)
	all := map[string][]answer{
		"undecodable twice at one version": {listed(fails(errDecoding)), ends("5", fails(errDecoding)), listed9},
		"called invalid twice":             {listed(fails(errCut)), invalid, invalid, listed9},
		"delete of an unreadable object":   {listed(fails(errUnreadable)), listed9}, // which no event reports
		"vanished resource":                {listed(fails(errCut)), failed("watch 5", errNotFound), listed9},
		"ERROR events at once":             {listed(internal), ends("5", internal), ends("5", internal), listed9},
		"ERROR events after that list": {
			listed(internal), ends("5", internal), ends("5", internal), streamed(sends("=9"), internal), listed9,
		},
		"ERROR events after a while": {listed(later), ends("5", later), ends("5", later), listed9},
		"ERROR events after a bookmark": {
			listed(internal), ends("5", quiet, internal), checked("5"), ends("5", quiet, internal), checked("5"), listed9,
		},
	}
	for _, code := range []int32{401, 403, 409, 414, 431, 500, 502, 503, 504} {
		all[fmt.Sprint("refused with ", code)] = refused(status(code, metav1.StatusReasonUnknown))
	}
	for name, answers := range all {
		t.Run(name, scenario{answers: answers, check: func(t *testing.T, r *Reflector[object], _ *script, j *journal) {
			entries := j.read()
			same(t, "first and last of the queue", []string{entries[0], entries[len(entries)-1]}, replaced5, replaced9)
			useless := !strings.Contains(name, "unreadable") && !strings.Contains(name, "vanished")
			if err := r.Health().LastError; useless != strings.Contains(err.Error(), "listed again") {
				t.Errorf("health says %v", err)
			}
		}}.run)
	}
	t.Run("expired, after a moment", scenario{
		answers: []answer{listed(fails(errExpired)), listed9}, queue: []string{replaced5, replaced9},
		during: func(r *Reflector[object], s *script) {
			same(t, "requests", s.requests(), "stream")
			if h := r.Health(); h.State != health.StateListing || h.Failures != 0 || !errors.Is(h.LastError, errExpired) {
				t.Errorf("health is %+v", h)
			}
			after(800 * time.Millisecond)
			same(t, "requests", s.requests(), "stream", "stream")
		},
	}.run)
}

// TestP18_EndsThatLeadToNoList has a server make progress, ask for a pause or be away.
func TestP18_EndsThatLeadToNoList(t *testing.T) {
	progress := []answer{listed(fails(errInternal))}
	for i := range 20 {
		progress = append(progress, watched(fmt.Sprint(5+i), sends(fmt.Sprint("~a@", 6+i)), fails(errInternal)))
	}
	// Something in front of the server answers in its place. When the server is back, it is
	// not listed by all its clients.
	away := []answer{listed(fails(errCut)), failed("watch 5", errUnavailable), failed("watch 5", errUnavailable)}
	for range 10 {
		away = append(away, failed(look, errUnavailable), failed("watch 5", errUnavailable))
	}
	deletes := []answer{listed(fails(errInternal))} // the version moves, and that to resume at stays
	for i := range 20 {
		deletes = append(deletes, watched("5", sends(fmt.Sprint("-a@", 6+i)), fails(errInternal)))
	}
	repeated := func(err error) []answer {
		return append([]answer{listed(fails(errCut))}, slices.Repeat([]answer{failed("watch 5", err)}, 20)...)
	}
	for name, answers := range map[string][]answer{
		"progress between ERROR events": append(progress, watched("25")),
		"deletes between ERROR events":  append(deletes, watched("5")),
		"503":                           append(away, checked("7"), watched("5")),
		"429":                           append(repeated(errTooMany(1)), watched("5"), checked("5")),
		"connection refused":            append(repeated(errRefused), watched("5"), checked("5")),
	} {
		t.Run(name, scenario{answers: answers, pass: 20 * time.Minute, check: unless(func(h health.Watch) bool {
			return h.Lists != 1 || h.State != health.StateWatching
		})}.run)
	}
	// A watch that lasts ends the growth of the waits, which earlier lists have made long.
	busy := failsAfter(2*time.Second, errTooMany(1))
	lasting := []answer{listed(fails(errExpired)), listed(fails(errExpired)), listed(busy)}
	lasting = append(lasting, slices.Repeat([]answer{watched("5", busy)}, 20)...)
	t.Run("429 after a while", scenario{
		answers: append(lasting, watched("5")), pass: 75 * time.Second,
	}.run)
}

// TestBookmarkOfNoNumberIsMalformed has a server whose versions are numbers send a bookmark of
// another kind: it is not adopted, and the events that come with it are. It may be one that ends a
// streamed list.
func TestBookmarkOfNoNumberIsMalformed(t *testing.T) {
	for i, odd := range []string{"x", "007", "0", "-1", "1e3", " 9", "٩"} {
		mark := source.Event[object]{Type: []source.EventType{source.Bookmark, source.InitialEventsEnd}[i%2], Item: source.Item[object]{Version: odd}}
		scenario{
			answers: []answer{listed(read{events: append(parse("~a@6"), mark)}), watched("6", read{events: []source.Event[object]{mark}}), listed9},
			queue:   []string{replaced5, "push 6: set a@6", "bookmark 6", replaced9},
			check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
				if err := r.Health().LastError; !errors.Is(err, source.ErrMalformed) {
					t.Errorf("after %q health says %v", odd, err)
				}
			},
		}.run(t)
	}
}

// TestSecondEndOfAListIsABookmark has the mark that ends a streamed list come in a watch.
func TestSecondEndOfAListIsABookmark(t *testing.T) {
	for _, version := range []string{"4", "x"} {
		scenario{answers: []answer{listed(sends("=" + version))}, pass: time.Millisecond, check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
			if h := r.Health(); h.Version != "5" || h.LastError == nil {
				t.Errorf("after a version of %q health is %+v", version, h)
			}
		}}.run(t)
	}
}

// opener is how a server of uselessServer answers a watch.
type opener func(ctx context.Context, from string) (source.Stream[object], error)

// uselessServer can be listed, and every watch ends as its opener says.
type uselessServer struct {
	lists, requests atomic.Int64
	open            opener
}

func (b *uselessServer) List(_ context.Context, o source.ListOptions) (source.Page[object], error) {
	b.requests.Add(1)
	if o.Limit != 1 {
		b.lists.Add(1)
	}
	return onePage.page, nil
}

func (b *uselessServer) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[object], error) {
	b.requests.Add(1)
	return b.open(ctx, o.Version)
}

// hour runs a reflector and counts the requests of an hour, after the first ten minutes.
func (b *uselessServer) hour(t *testing.T) (lists, requests int64) {
	synctest.Test(t, func(t *testing.T) {
		r := New(b, &journal{}, Options[object]{Transport: source.Transport{NoStreamedLists: true, Backoff: source.Backoff{Jitter: -1}}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		after(10 * time.Minute) // until the waits are the longest
		lists, requests = b.lists.Load(), b.requests.Load()
		after(time.Hour)
		lists, requests = b.lists.Load()-lists, b.requests.Load()-requests
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return lists, requests
}

// TestP18_ServerThatCannotBeWatchedIsListedPolitely counts the requests of an hour. client-go
// sends 187 lists and as many watches there.
func TestP18_ServerThatCannotBeWatchedIsListedPolitely(t *testing.T) {
	reading := func(reads ...read) opener {
		return func(ctx context.Context, _ string) (source.Stream[object], error) {
			return &scriptedStream{ctx: ctx, reads: reads}, nil
		}
	}
	opening := func(err error) opener {
		return func(context.Context, string) (source.Stream[object], error) { return nil, err }
	}
	const moment = 2 * time.Second
	ahead, same5 := sends("~a@99"), sends("*5")
	for name, test := range map[string]struct {
		most int64 // lists
		open opener
	}{
		"refused":                                {187, opening(errInternal)},
		"expired":                                {187, opening(errExpired)},
		"not understood":                         {187, opening(errDecoding)},
		"ERROR event":                            {187, reading(fails(errInternal))},
		"ERROR event later":                      {187, reading(failsAfter(moment, errInternal))},
		"ERROR event after a bookmark":           {187, reading(same5, failsAfter(moment, errInternal))},
		"expired later":                          {187, reading(failsAfter(moment, errExpired))},
		"undecodable":                            {187, reading(fails(errDecoding))},
		"undecodable later":                      {187, reading(failsAfter(moment, errDecoding))},
		"undecodable after a bookmark":           {187, reading(same5, failsAfter(moment, errDecoding))},
		"cut at once":                            {187, reading(fails(errCut))},
		"ended at once":                          {187, reading(eof)},
		"ended at once, after a bookmark":        {187, reading(same5, eof)},
		"ended at once, ahead of the list":       {187, reading(ahead, eof)},
		"expired at once, ahead of the list":     {187, reading(ahead, fails(errExpired))},
		"expired later, ahead of the list":       {187, reading(ahead, failsAfter(moment, errExpired))},
		"undecodable at once, ahead of the list": {187, reading(ahead, fails(errDecoding))},
		"ERROR event at once, ahead of the list": {187, reading(ahead, fails(errInternal))},
		"ended at once, opened slowly": {187, func(ctx context.Context, version string) (source.Stream[object], error) {
			time.Sleep(11 * time.Second) // client-go's REST client repeats a request ten times
			return reading(eof)(ctx, version)
		}},
		// A proxy cuts every watch that is quiet for some seconds.
		"reset while it is quiet":          {0, reading(failsAfter(moment, errCut))},
		"ended in order while it is quiet": {0, reading(failsAfter(moment, io.EOF))},
	} {
		t.Run(name, func(t *testing.T) {
			lists, requests := (&uselessServer{open: test.open}).hour(t)
			if lists > test.most || lists == 0 && test.most > 0 || test.most > 0 && requests > 374 {
				t.Errorf("%d lists and %d requests in all in an hour", lists, requests)
			}
		})
	}
}

func TestP09_ClosedQueueEndsRun(t *testing.T) {
	scenario{
		j: &journal{closed: true}, answers: []answer{listed(sends("~a@6"), sends("~a@7"))},
		queue: []string{replaced5, "push 6: set a@6"},
	}.run(t)
}

func TestP18_ExpiredAgainAndAgainIsPolite(t *testing.T) {
	scenario{
		answers: slices.Repeat([]answer{listed(fails(errExpired))}, 7), pass: time.Minute,
		during: func(_ *Reflector[object], s *script) { same(t, "requests at once", s.requests(), "stream") },
	}.run(t)
}
