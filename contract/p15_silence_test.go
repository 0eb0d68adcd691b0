package contract_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
)

// TestP15_WatchThatFallsSilentIsResumed has the connection stay open and bring nothing
// any more. The guard is the timer of the reflector's watched.Next.
func TestP15_WatchThatFallsSilentIsResumed(t *testing.T) {
	var o tidings.FactoryOptions
	o.Transport.WatchTimeout = 24 * time.Hour
	propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
		w.create("a", "1")
		// The object, the end of the list, two bookmarks, and then nothing.
		w.server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Stall(5, 0))
		w.start()
		time.Sleep(2*time.Minute + 30*time.Second)
		w.update("a", "2")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := w.probe.get("default/a"); label(got) != "1" {
			w.Fatalf("the cache holds %q, although nothing could bring that", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		w.agree()
		h := w.probe.informer().Health()
		if h.State != tidings.StateWatching || h.Lists != 1 || h.Watches != 2 || h.LastError == nil ||
			!strings.Contains(h.LastError.Error(), "quiet") {
			w.Errorf("health is %+v", h)
		}
	})
}

// TestP15_InstanceThatStandsStill measures how long an informer holds on to a server that stands
// still: in a watch with bookmarks, in one that has had none, and in one that is not begun.
func TestP15_InstanceThatStandsStill(t *testing.T) {
	o := tidings.FactoryOptions{Transport: tidings.Transport{WatchTimeout: time.Hour}}
	withInstances(t, 1, o, func(w *world, all []*apisim.Instance) {
		w.create("a", "1")
		w.start()
		w.after(5 * time.Minute / 2)
		ends := func(after time.Duration, says string) {
			w.Helper()
			all[0].SetPaused(true)
			w.after(after - 5*time.Second)
			if err := w.health().LastError; err != nil && strings.Contains(err.Error(), says) {
				w.Errorf("too early, health says: %v", err)
			}
			w.after(10 * time.Second)
			if err := w.health().LastError; err == nil || !strings.Contains(err.Error(), says) {
				w.Errorf("after %v health does not say %q, but %v", after, says, err)
			}
		}
		goOn := func() {
			all[0].SetPaused(false)
			all[0].CutConnections()
			w.settle()
			w.agree()
		}
		w.update("a", "2")
		w.after(time.Second)
		ends(4*time.Minute, "was quiet for 4 times")
		goOn() // the next watch has two bookmarks
		all[0].CutConnections()
		w.after(10 * time.Second)
		w.update("a", "3")
		w.after(time.Second)
		ends(4*time.Minute, "was quiet for 4 times") // without a bookmark
		all[0].CutConnections()
		w.after(5 * time.Second) // a watch begins now
		ends(2*time.Minute, "nothing for 2m0s")
		goOn()
	})
}

// TestP15_InstanceWhoseCacheIsFrozen has a watch resumed at a server that does not have its
// version, and never gets it.
func TestP15_InstanceWhoseCacheIsFrozen(t *testing.T) {
	withInstances(t, 2, tidings.FactoryOptions{}, func(w *world, all []*apisim.Instance) {
		w.create("a", "1")
		all[1].SetLag(apisim.Frozen)
		only(all, 0)
		w.start()
		w.after(3 * time.Minute)
		w.update("a", "2")
		w.after(time.Second)
		all[1].SetLag(0)
		all[1].SetAvailable(true)
		all[1].SetLag(apisim.Frozen)
		w.update("a", "3")
		w.after(time.Second)
		all[0].SetAvailable(false)
		w.update("a", "4")
		for range 3 { // it is left again and again, as it may be the next one by chance
			w.after(4*time.Minute + 10*time.Second)
			at, err := w.health().LastErrorAt, w.health().LastError
			if time.Since(at) > time.Minute || !strings.Contains(err.Error(), "was quiet for 4 times") {
				w.Errorf("health says: %v, %v ago", err, time.Since(at))
			}
		}
		only(all, 0)
		if took := w.waitFor(w.versions["a"]); took > 10*time.Second {
			w.Errorf("the cache was behind for %v", took)
		}
	})
}

// aPatience is the time for which a list may bring nothing.
const aPatience = 2 * time.Minute

// TestP15_ListThatFallsSilentIsEnded has the server take a list and then say nothing, or
// nothing more, without a timeout in the client's configuration. The guard is the timer of
// the reflector's patience.
func TestP15_ListThatFallsSilentIsEnded(t *testing.T) {
	for name, test := range map[string]struct {
		fault apisim.Fault
		says  string
	}{
		"is never answered":    {apisim.Delay(24 * time.Hour), "not even the beginning of the answer"},
		"stalls in the middle": {apisim.Stall(1, 0), "bytes of the answer"},
	} {
		t.Run(name, func(t *testing.T) {
			propertyWith(t, paged, tidings.Selection{Namespace: "default"}, func(w *world) {
				for _, name := range []string{"a", "b", "c"} {
					w.create(name, "1")
				}
				l := w.follow()
				silence := w.inject(apisim.Match{Verb: "list"}, test.fault)
				w.startFactory()
				w.after(aPatience - time.Second)
				if h := w.probe.informer().Health(); h.State != tidings.StateListing ||
					h.LastError != nil {
					w.Errorf("within the time health is %s after %v", h.State, h.LastError)
				}
				w.after(time.Second)
				h := w.probe.informer().Health()
				if h.State != tidings.StateBackoff || !errors.Is(h.LastError, source.ErrSilent) ||
					h.Synced {
					w.Errorf("after it health is %s after %v", h.State, h.LastError)
				}
				for _, says := range []string{
					"list configmaps.v1", `namespace "default"`, "nothing for 2m0s", test.says,
					"MaxSilence",
				} {
					l.says(says)
				}
				w.after(10 * time.Minute)
				if met := silence.Met(); met < 4 || met > 7 {
					w.Errorf("%d lists in 12 minutes", met)
				}
				silence.Lift()
				w.after(aPatience + time.Minute)
				l.agrees()
			})
		})
	}
}

// TestP15_FactorySaysHowLongAListMayBeSilent has lists that are not answered.
func TestP15_FactorySaysHowLongAListMayBeSilent(t *testing.T) {
	for name, test := range map[string]struct {
		limit time.Duration
		ends  bool
	}{"a second": {time.Second, true}, "no limit": {-1, false}} {
		t.Run(name, func(t *testing.T) {
			o := tidings.FactoryOptions{Transport: tidings.Transport{
				NoStreamedLists: true, MaxSilence: test.limit,
			}}
			propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
				silence := w.inject(apisim.Match{Verb: "list"}, apisim.Delay(24*time.Hour))
				w.startFactory()
				w.after(time.Hour)
				if h := w.probe.informer().Health(); errors.Is(h.LastError, source.ErrSilent) != test.ends {
					w.Errorf("after an hour health is %s after %v", h.State, h.LastError)
				}
				silence.Lift()
			})
		})
	}
}

// TestP15_SlowListsAreLeftAlone has a list of each sort come in pieces, with nothing for
// almost as long as is allowed between any two of them.
func TestP15_SlowListsAreLeftAlone(t *testing.T) {
	for name, transport := range map[string]tidings.Transport{
		"streamed": {WatchTimeout: 24 * time.Hour}, "in pages": {NoStreamedLists: true},
	} {
		o := tidings.FactoryOptions{Transport: transport}
		t.Run(name, func(t *testing.T) {
			propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
				for _, name := range []string{"a", "b", "c"} {
					w.create(name, "1")
				}
				l := w.follow()
				first := true
				w.wrap(func(rw http.ResponseWriter, r *http.Request) http.ResponseWriter {
					if !strings.HasSuffix(r.URL.Path, "/configmaps") || !first {
						return rw
					}
					first = false
					return &slowWriter{ResponseWriter: rw, r: r}
				})
				w.startFactory()
				began := time.Now()
				for !w.probe.informer().HasSynced() && time.Since(began) < 3*time.Hour {
					w.after(time.Minute)
				}
				if took := time.Since(began); took < 5*aPatience {
					w.Errorf("the list took %v, which proves nothing", took)
				}
				l.lists(1)
				w.update("a", "2")
				w.after(time.Hour)
				l.agrees()
			})
		})
	}
}

// slowWriter takes its time before each part of the list that it writes.
type slowWriter struct {
	http.ResponseWriter
	r     *http.Request
	parts int
}

func (w *slowWriter) Write(data []byte) (written int, err error) {
	const part = 40
	for len(data) > 0 && err == nil {
		if w.parts++; w.parts <= 20 {
			select {
			case <-time.After(aPatience - time.Second):
			case <-w.r.Context().Done():
				return written, w.r.Context().Err()
			}
		}
		n := 0
		n, err = w.ResponseWriter.Write(data[:min(part, len(data))])
		http.NewResponseController(w.ResponseWriter).Flush() //nolint:errcheck // the next write says why it failed
		data, written = data[n:], written+n
	}
	return written, err
}

func (w *slowWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
