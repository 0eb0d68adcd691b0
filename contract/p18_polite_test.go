package contract_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestP18_MissingDefinitionIsAskedForPolitely counts the requests for a definition that does not
// exist, and for one that is gone.
func TestP18_MissingDefinitionIsAskedForPolitely(t *testing.T) {
	withMappers(t, tidings.Selection{}, func(w *world, _ string) {
		w.startFactory()
		for _, state := range []string{"absent", "gone"} {
			if state == "gone" {
				w.install()
				time.Sleep(2 * time.Minute)
				w.uninstall()
			}
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			w.server.ForgetRequests()
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			requests := 0
			for _, r := range w.server.Requests() {
				if r.Resource.Group == "example.com" {
					requests++
				}
			}
			namespaces := max(1, len(w.probe.informer().Namespaces()))
			if requests > 80*namespaces {
				w.Errorf("%d requests in 20 minutes for a definition that is %s", requests, state)
			}
		}
	})
}

// meter notes when requests leave a client, those included that reach no server.
type meter struct {
	next http.RoundTripper

	mu    sync.Mutex // guards the rest
	since time.Time
	sent  []time.Duration // since then, in virtual time
}

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	m.sent = append(m.sent, time.Since(m.since))
	m.mu.Unlock()
	return m.next.RoundTrip(r)
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.sent = time.Now(), nil
}

// total returns the number of requests.
func (m *meter) total() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sent)
}

// busiest returns the most requests that were sent within any stretch of a length,
// after a time.
func (m *meter) busiest(within, after time.Duration) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.sent)
	most, first := 0, 0
	for last, at := range m.sent {
		for at-m.sent[first] >= within || m.sent[first] < after && first < last {
			first++
		}
		if at >= after {
			most = max(most, last-first+1)
		}
	}
	return most
}

const fleetSize = 200

// fleet is many informers of one server, without a limit on their client.
type fleet struct {
	*testing.T
	server    *apisim.Server
	meter     meter
	gate      gate
	informers []*tidings.Informer[*corev1.ConfigMap]
}

// withFleet runs a test with a fleet that is watching. The faults meet its first
// watches.
func withFleet(t *testing.T, faults []apisim.Fault, test func(f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{T: t}
		f.meter.reset()
		var err error
		if f.server, err = apisim.New(apisim.Options{Middleware: f.gate.middleware}); err != nil {
			t.Fatal(err)
		}
		f.server.Inject(apisim.Match{Verb: "watch", Times: fleetSize}, faults...)
		config := f.server.Config()
		config.QPS = -1
		config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			f.meter.next = next
			return &f.meter
		}
		factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range fleetSize {
			selection := tidings.Selection{Labels: fmt.Sprintf("n=%d", n)}
			i, err := tidings.For[*corev1.ConfigMap](factory, selection)
			if err != nil {
				t.Fatal(err)
			}
			f.informers = append(f.informers, i)
		}
		ctx, stop := context.WithCancel(context.Background())
		if err := factory.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if err := factory.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		// A write that none of them sees, so that their versions are of the past.
		if _, err := f.server.Create(context.Background(), object("unseen", "unseen")); err != nil {
			t.Fatal(err)
		}
		f.meter.reset()
		test(f)
		stop()
		if err := factory.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := f.server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// recovers waits until every informer is watching again and holds the objects that were written
// meanwhile.
func (f *fleet) recovers(within time.Duration) {
	f.Helper()
	for n := range f.informers {
		if _, err := f.server.Create(context.Background(), object(fmt.Sprintf("object-%d",
			n), fmt.Sprint(n))); err != nil {
			f.Fatal(err)
		}
	}
	time.Sleep(within)
	synctest.Wait()
	for n, i := range f.informers {
		if h := i.Health(); h.State != tidings.StateWatching || h.Objects != 1 {
			f.Fatalf("after %v informer %d is %s with %d objects: %v",
				within, n, h.State, h.Objects, h.LastError)
		}
	}
}

// TestP18_FleetIsPolite disturbs the server of 200 informers and counts the requests that follow,
// of all clients together. The guards are the jitter in delay, the count of failures in
// Reflector.retry, and the wait before the list that follows an expired version in afterWatch.
func TestP18_FleetIsPolite(t *testing.T) {
	restart := func(down time.Duration, kept bool) func(*fleet) {
		return func(f *fleet) {
			f.server.Restart(apisim.RestartOptions{Down: down, KeepHistory: kept})
		}
	}
	tests := map[string]struct {
		happen func(f *fleet)
		// total is the most requests until all is well again: three minutes.
		total int
		// second and tenth are the most within any second and any tenth of one.
		second, tenth int
		// later is the most within any second once ten have passed.
		later int
	}{
		// With a check of each a minute later, at its first bookmark: the server may have been
		// restored.
		"restart, history kept":           {restart(time.Millisecond, true), 400, 200, 60, 200},
		"restart, history lost":           {restart(time.Millisecond, false), 400, 250, 70, 0},
		"away for a minute, history kept": {restart(time.Minute, true), 2000, 250, 70, 80},
		"away for a minute, history lost": {restart(time.Minute, false), 2200, 250, 70, 80},
		// Six of each are refused at most, ten seconds apart. A watch, a question and a list
		// follow.
		"too many requests for a minute": {tooMany, 9 * fleetSize, 200, 60, 100},
		// With their first event.
		"all watches expire at once": {func(*fleet) {}, 200, 200, 60, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var faults []apisim.Fault
			if name == "all watches expire at once" {
				faults = append(faults, apisim.Fail(2, http.StatusGone))
			}
			withFleet(t, faults, func(f *fleet) {
				test.happen(f)
				f.recovers(3 * time.Minute)
				total, second := f.meter.total(), f.meter.busiest(time.Second, 0)
				tenth := f.meter.busiest(time.Second/10, 0)
				later := f.meter.busiest(time.Second, 10*time.Second)
				t.Logf("%d requests, at most %d within a second, %d within a tenth, %d later on",
					total, second, tenth, later)
				if total > test.total || second > test.second || tenth > test.tenth ||
					later > test.later {
					t.Errorf("want at most %d, %d, %d and %d",
						test.total, test.second, test.tenth, test.later)
				}
			})
		})
	}
}

// tooMany has the server say for a minute that it is asked too much.
func tooMany(f *fleet) {
	until := time.Now().Add(time.Minute)
	f.gate.set(func(w http.ResponseWriter, r *http.Request) bool {
		if time.Now().After(until) {
			return false
		}
		w.Header().Set("Retry-After", "10")
		return refuse(http.StatusTooManyRequests, "TooManyRequests")(w, r)
	})
	f.server.Restart(apisim.RestartOptions{Down: time.Millisecond})
}

// TestP18_ListsOfSlotsAreMadeAgain fails one request of the list of slots that come. Add knows
// nothing of it: a page is asked for again, and a first page as any list is.
func TestP18_ListsOfSlotsAreMadeAgain(t *testing.T) {
	for name, fault := range map[string]apisim.Fault{
		"429": apisim.Refuse(429, time.Second), "503": apisim.Refuse(503, time.Second),
		"500": apisim.Refuse(500, 0), "cut": apisim.CutWithin(1), "truncated": apisim.Truncate(1),
		"garbled": apisim.Garble(1), "expired": apisim.Refuse(410, 0),
	} {
		for _, page := range []int{1, 15} {
			if name == "expired" && page == 1 {
				continue // a first page has no token
			}
			t.Run(fmt.Sprint(name, " on page ", page), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, kinds["typed"], paged, apisim.Options{})
					defer w.end()
					s := &slotted{world: w, slots: tidings.NewSlots(tidings.ByUID, half(0))}
					w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespace: "default", Slots: s.slots})
					s.have(40)
					l := s.follow()
					s.start()
					before := s.health()
					s.server.ForgetRequests()
					s.server.Inject(apisim.Match{Verb: "list", Page: page}.Nth(1), fault)
					s.must(s.slots.Add(s.within(10*time.Minute), half(1)))
					synctest.Wait()
					s.agree(l)
					// An expired token leads to a list without pages.
					if lists, h := s.lists(), s.health(); lists > 40 || h.LastError == nil || h.Lists <= before.Lists {
						t.Errorf("%d requests; %d lists, then %d; last error %v", lists, before.Lists, h.Lists, h.LastError)
					}
				})
			})
		}
	}
}

// TestP18_NilLoggerIsTheDefaultLogger has a server that is out of reach for five minutes: with
// the zero value of the options, the default logger receives one line at once, and one when
// the server is back.
func TestP18_NilLoggerIsTheDefaultLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := asDefault(t)
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		mapsOf(w)
		w.server.SetAvailable(false)
		w.must(w.factory.Start(w.ctx))
		synctest.Wait()
		expectLines(t, "at once", l.take(), "list and watch failed")
		w.after(5 * time.Minute)
		expectLines(t, "during the outage", l.take())
		w.server.SetAvailable(true)
		w.settle()
		expectLines(t, "after the outage", l.take(), "list and watch recovered")
	})
}

// TestP18_ARecoveryIsTheBeginningOfTheWatch, which a quiet collection brings its first bookmark
// after a minute.
func TestP18_ARecoveryIsTheBeginningOfTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := asDefault(t)
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		mapsOf(w)
		w.start()
		w.server.SetAvailable(false)
		w.server.CutConnections()
		w.after(time.Second)
		w.server.SetAvailable(true)
		w.after(5 * time.Minute)
		lines := l.take()
		if len(lines) != 2 || !strings.Contains(lines[1], "recovered") {
			t.Fatalf("logged: %q", lines)
		}
		_, after, _ := strings.Cut(lines[1], "after=")
		if took, err := time.ParseDuration(strings.TrimSpace(after)); err != nil || took > 10*time.Second {
			t.Errorf("%q is logged after an outage of a second (%v)", lines[1], err)
		}
	})
}
