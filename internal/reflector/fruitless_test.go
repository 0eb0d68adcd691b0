package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

const look = `list "" 1 ""`

var (
	errUnavailable = status(503, metav1.StatusReasonServiceUnavailable)
	errPoisoned    = status(504, metav1.StatusReasonTimeout)
)

// listedLater is a streamed list that answers one of listed, without its object.
var listedLater = answer{expect: "stream", reads: []read{{events: []source.Event[object]{bookmark(source.InitialEventsEnd, "9")}}}}

// TestP18_ErrorEventsLeadToAList has every watch from a version end with an ERROR event.
func TestP18_ErrorEventsLeadToAList(t *testing.T) {
	failing, later := answer{expect: "watch 5", reads: []read{{err: errInternal}}}, read{after: 2 * time.Second, err: errInternal}
	again := answer{expect: "watch 5", reads: []read{{events: []source.Event[object]{bookmark(source.Bookmark, "5")}}, {err: errInternal}}}
	for name, answers := range map[string][]answer{
		"at once":                          {listed(read{err: errInternal}), failing, failing, listedLater},
		"after a while":                    {listed(later), {expect: "watch 5", reads: []read{later}}, {expect: "watch 5", reads: []read{later}}, listedLater},
		"after a bookmark of that version": {listed(read{err: errInternal}), again, again, listedLater},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, answers, hour, func(r *Reflector[object], _ *script, j *journal) {
				passTheWaits()
				entries := j.read()
				same(t, "first and last of the queue", []string{entries[0], entries[len(entries)-1]}, replaced, "replace 9 (new history false):")
				if err := r.Health().LastError; !errors.Is(err, errInternal) || !strings.Contains(err.Error(), "listed again") {
					t.Errorf("health says %v", err)
				}
			})
		})
	}
}

// TestBookmarkOfNoNumberIsMalformed has a server whose versions are numbers send a bookmark of
// another kind: it is not adopted, and what comes with it is. It may be one that ends a
// streamed list.
func TestBookmarkOfNoNumberIsMalformed(t *testing.T) {
	for i, odd := range []string{"x", "007", "0", "-1", "1e3", " 9", "٩"} {
		mark := bookmark([]source.EventType{source.Bookmark, source.InitialEventsEnd}[i%2], odd)
		bad := read{events: []source.Event[object]{event(source.Modified, "a", "6"), mark}}
		again := answer{expect: "watch 6", reads: []read{{events: []source.Event[object]{mark}}}}
		run(t, []answer{listed(bad), again, listedLater}, hour, func(r *Reflector[object], _ *script, j *journal) {
			passTheWaits()
			entries := j.read()
			same(t, "first two and last of the queue", append(entries[:2:2], entries[len(entries)-1]), replaced, "push 6: set a@6", "replace 9 (new history false):")
			if strings.Contains(fmt.Sprint(entries), "bookmark "+odd) {
				t.Errorf("a bookmark of %q was adopted: %q", odd, entries)
			}
			if err := r.Health().LastError; !errors.Is(err, source.ErrMalformed) {
				t.Errorf("health says %v", err)
			}
		})
	}
}

// TestSecondEndOfAListIsABookmark has the mark that ends a streamed list come in a watch. It is
// held to what bookmarks are held to.
func TestSecondEndOfAListIsABookmark(t *testing.T) {
	for _, version := range []string{"4", "x"} {
		again := read{events: []source.Event[object]{bookmark(source.InitialEventsEnd, version)}}
		run(t, []answer{listed(again)}, hour, func(r *Reflector[object], _ *script, j *journal) {
			synctest.Wait()
			if h := r.Health(); h.Version != "5" || h.LastError == nil {
				t.Errorf("after a version of %q health is %+v", version, h)
			}
		})
	}
}

// TestP18_ProgressBetweenErrorEventsIsNoReasonToList has every watch bring something new first.
func TestP18_ProgressBetweenErrorEventsIsNoReasonToList(t *testing.T) {
	answers := []answer{listed(read{err: errInternal})}
	for i := range 20 {
		news := read{events: []source.Event[object]{event(source.Modified, "a", fmt.Sprint(6+i))}}
		answers = append(answers, answer{expect: fmt.Sprint("watch ", 5+i), reads: []read{news, {err: errInternal}}})
	}
	run(t, append(answers, answer{expect: "watch 25"}), hour, func(r *Reflector[object], _ *script, _ *journal) {
		passTheWaits()
		if h := r.Health(); h.Lists != 1 || h.Version != "25" {
			t.Errorf("health is %+v", h)
		}
	})
}

// TestP18_WatchesThatAreCutWhileTheyAreQuietLeadToNoList has a proxy cut every watch that is
// quiet for some seconds.
func TestP18_WatchesThatAreCutWhileTheyAreQuietLeadToNoList(t *testing.T) {
	for name, end := range map[string]error{"reset": errCut, "orderly": io.EOF} {
		t.Run(name, func(t *testing.T) {
			server := &barrenServer{failing: func(ctx context.Context, _ string) (source.Stream[object], error) {
				return &scriptedStream{ctx: ctx, reads: []read{{after: 2 * time.Second, err: end}}}, nil
			}}
			if lists, _ := server.hour(t); lists > 0 {
				t.Errorf("%d lists in an hour", lists)
			}
		})
	}
}

// TestP18_RefusedWatchesLeadToAList has every attempt to watch refused by a server that
// lists. It is asked for its version before the last one.
func TestP18_RefusedWatchesLeadToAList(t *testing.T) {
	for _, code := range []int32{401, 403, 409, 414, 431, 500, 502, 503, 504} {
		refused := answer{expect: "watch 5", err: status(code, metav1.StatusReasonUnknown)}
		run(t, []answer{listed(read{err: errCut}), refused, refused, probed("5"), refused, listedLater}, hour,
			func(r *Reflector[object], _ *script, j *journal) {
				passTheWaits()
				same(t, fmt.Sprint("queue of ", code), j.read(), replaced, "replace 9 (new history false):")
			})
	}
}

// TestP18_OutageLeadsToNoList has something in front of the server answer in its place: when
// it is back, it is not listed by all its clients.
func TestP18_OutageLeadsToNoList(t *testing.T) {
	out := func(expect string) answer { return answer{expect: expect, err: errUnavailable} }
	answers := []answer{listed(read{err: errCut}), out("watch 5"), out("watch 5")}
	for range 10 {
		answers = append(answers, out(look), out("watch 5"))
	}
	run(t, append(answers, probed("7"), answer{expect: "watch 5"}), hour, func(r *Reflector[object], s *script, j *journal) {
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		same(t, "queue", j.read(), replaced)
		if h := r.Health(); h.Lists != 1 || h.State != health.Watching {
			t.Errorf("health is %+v", h)
		}
	})
}

// TestP18_ImpatienceLeadsToNoList has the server ask for patience, or be out of reach.
func TestP18_ImpatienceLeadsToNoList(t *testing.T) {
	for name, err := range map[string]error{"429": errTooMany(1), "connection refused": errRefused} {
		answers := []answer{listed(read{err: errCut})}
		for range 20 {
			answers = append(answers, answer{expect: "watch 5", err: err})
		}
		run(t, append(answers, answer{expect: "watch 5"}, probed("5")), hour, func(r *Reflector[object], s *script, j *journal) {
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			same(t, "queue after "+name, j.read(), replaced)
		})
	}
}

// TestP16_PoisonedVersionIsFound has the cache at a version that the server will not reach.
// No watch from it is ever begun.
func TestP16_PoisonedVersionIsFound(t *testing.T) {
	const poison = "18446744073709551615"
	refused := answer{expect: "watch " + poison, err: errPoisoned}
	run(t, []answer{
		listed(read{events: []source.Event[object]{bookmark(source.Bookmark, poison)}}, read{err: errCut}),
		refused, refused, probed("7"), listedLater,
	}, hour, func(r *Reflector[object], _ *script, j *journal) {
		passTheWaits()
		same(t, "queue", j.read(), replaced, "bookmark "+poison, "replace 9 (new history true):")
	})
}

// barrenServer lists well, and every watch of it ends as failing says.
type barrenServer struct {
	lists, requests atomic.Int64
	failing         func(ctx context.Context, from string) (source.Stream[object], error)
}

func (b *barrenServer) List(_ context.Context, o source.ListOptions) (source.Page[object], error) {
	b.requests.Add(1)
	if o.Limit != 1 {
		b.lists.Add(1)
	}
	return source.Page[object]{Items: []source.Item[object]{item("a", "3")}, Version: "5"}, nil
}

func (b *barrenServer) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[object], error) {
	b.requests.Add(1)
	return b.failing(ctx, o.Version)
}

// hour runs a reflector over the server and counts the requests of an hour, after the first
// ten minutes.
func (b *barrenServer) hour(t *testing.T) (lists, requests int64) {
	synctest.Test(t, func(t *testing.T) {
		r := New(b, &journal{}, Options[object]{NoStreamedLists: true, Backoff: Backoff{Jitter: -1}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(10 * time.Minute) // until the waits are the longest
		synctest.Wait()
		lists, requests = b.lists.Load(), b.requests.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		lists, requests = b.lists.Load()-lists, b.requests.Load()-requests
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return lists, requests
}

// TestP18_ServerThatCannotBeWatchedIsListedPolitely counts the requests of an hour. client-go
// sends 187 lists and as many watches there, counted by TestWatchesOfNoUseLeadToAList.
func TestP18_ServerThatCannotBeWatchedIsListedPolitely(t *testing.T) {
	reading := func(reads ...read) func(context.Context, string) (source.Stream[object], error) {
		return func(ctx context.Context, _ string) (source.Stream[object], error) {
			return &scriptedStream{ctx: ctx, reads: reads}, nil
		}
	}
	opening := func(err error) func(context.Context, string) (source.Stream[object], error) {
		return func(context.Context, string) (source.Stream[object], error) { return nil, err }
	}
	moment := 2 * time.Second
	ahead := read{events: []source.Event[object]{event(source.Modified, "a", "99")}}
	same5 := read{events: []source.Event[object]{bookmark(source.Bookmark, "5")}}
	for name, failing := range map[string]func(context.Context, string) (source.Stream[object], error){
		"refused":                                opening(errInternal),
		"expired":                                opening(errExpired),
		"not understood":                         opening(errDecoding),
		"ERROR event":                            reading(read{err: errInternal}),
		"ERROR event later":                      reading(read{after: moment, err: errInternal}),
		"ERROR event after a bookmark":           reading(same5, read{after: moment, err: errInternal}),
		"expired later":                          reading(read{after: moment, err: errExpired}),
		"undecodable":                            reading(read{err: errDecoding}),
		"undecodable later":                      reading(read{after: moment, err: errDecoding}),
		"undecodable after a bookmark":           reading(same5, read{after: moment, err: errDecoding}),
		"cut at once":                            reading(read{err: errCut}),
		"ended at once":                          reading(read{err: io.EOF}),
		"ended at once, after a bookmark":        reading(same5, read{err: io.EOF}),
		"ended at once, ahead of the list":       reading(ahead, read{err: io.EOF}),
		"expired at once, ahead of the list":     reading(ahead, read{err: errExpired}),
		"expired later, ahead of the list":       reading(ahead, read{after: moment, err: errExpired}),
		"undecodable at once, ahead of the list": reading(ahead, read{err: errDecoding}),
		"ERROR event at once, ahead of the list": reading(ahead, read{err: errInternal}),
		"ended at once, opened slowly": func(ctx context.Context, version string) (source.Stream[object], error) {
			time.Sleep(11 * time.Second) // client-go's REST client repeats a request ten times
			return reading(read{err: io.EOF})(ctx, version)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if lists, requests := (&barrenServer{failing: failing}).hour(t); requests > 374 || lists > 187 || lists == 0 {
				t.Errorf("%d lists and %d requests in all in an hour", lists, requests)
			}
		})
	}
}
