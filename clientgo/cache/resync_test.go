package cache_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"
)

// clock is a handler that records the times of updates, since it was made.
type clock struct {
	began time.Time

	mu    sync.Mutex // guards times
	times []time.Duration
}

func newClock() *clock { return &clock{began: time.Now()} }

func (*clock) OnAdd(any, bool) {}
func (*clock) OnDelete(any)    {}

func (c *clock) OnUpdate(any, any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = append(c.times, time.Since(c.began))
}

// seconds returns the times of updates, in seconds.
func (c *clock) seconds() []float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []float64
	for _, d := range c.times {
		list = append(list, d.Seconds())
	}
	return list
}

// asking is a handler that requests a resync period; nil requests none.
type asking struct {
	period *time.Duration
	late   bool      // after Run
	want   []float64 // the times of resyncs, in seconds
}

func seconds(n float64) *time.Duration { return new(time.Duration(n * float64(time.Second))) }

// TestResyncPeriods: the periods of handlers are rounded, before and after Run.
func TestResyncPeriods(t *testing.T) {
	for _, tt := range []struct {
		name     string
		informer time.Duration
		until    time.Duration
		handlers []asking
	}{
		{"each its own", time.Second, 6 * time.Second, []asking{
			{period: seconds(0)},
			{period: seconds(2), want: []float64{2, 4, 6}},
			{period: seconds(3), want: []float64{3, 6}},
		}},
		{"the informer's by default", 2 * time.Second, 5 * time.Second, []asking{
			{want: []float64{2, 4}},
			{period: seconds(0)},
			{late: true, want: []float64{2, 4}},
		}},
		{"none", 0, time.Minute, []asking{
			{}, {period: seconds(5)}, {period: seconds(5), late: true},
		}},
		{"less than a second", time.Minute, 3500 * time.Millisecond, []asking{
			{period: seconds(0.01), want: []float64{1, 2, 3}},
		}},
		{"the shortest before Run is the clock's", 12 * time.Hour, 80 * time.Second, []asking{
			{period: seconds(0)},
			{period: seconds(60), want: []float64{75}},
			{period: seconds(55), want: []float64{75}},
			{period: seconds(25), want: []float64{25, 50, 75}},
			{}, // the informer's 12 hours
		}},
		{"a period is looked at when the clock does", 10 * time.Second, 65 * time.Second, []asking{
			{period: seconds(15), want: []float64{20, 40, 60}},
			{period: seconds(15), late: true, want: []float64{20, 40, 60}},
			{period: seconds(25), late: true, want: []float64{30, 60}},
		}},
		{"after Run none is shorter than the clock's", 10 * time.Second, 35 * time.Second, []asking{
			{period: seconds(3), late: true, want: []float64{10, 20, 30}},
			{period: seconds(0.01), late: true, want: []float64{10, 20, 30}},
			{period: seconds(0), late: true},
		}},
		{"shorter than a second and the informer too", 100 * time.Millisecond, 1350 * time.Millisecond, []asking{
			{want: []float64{1}},
			{period: seconds(0.3), late: true, want: []float64{1}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				informer := newInformer(newSource(t, "a"), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{ResyncPeriod: tt.informer})
				clocks := make([]*clock, len(tt.handlers))
				add := func(late bool) {
					for n, h := range tt.handlers {
						if h.late == late {
							clocks[n] = newClock()
							if _, err := informer.AddEventHandlerWithOptions(clocks[n], clientgo.HandlerOptions{ResyncPeriod: h.period, Logger: new(logr.Discard())}); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				add(false)
				runSynced(t, informer)
				add(true)
				settle(tt.until)
				for n, h := range tt.handlers {
					if got := clocks[n].seconds(); !slices.Equal(got, h.want) {
						t.Errorf("handler %d has resyncs at the seconds %v, want %v", n, got, h.want)
					}
				}
			})
		})
	}
}

// TestUnchangedAtRelist: an object that a list finds unchanged is an update for the handlers
// that are syncing: all of them until the first decision of the resync timer, and after each
// decision those that were due.
func TestUnchangedAtRelist(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a", "b")
		informer := newInformer(source, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{ResyncPeriod: time.Minute})
		var never, each, seldom recorder
		addHandler(t, informer, &each)
		for handler, period := range map[*recorder]time.Duration{&never: 0, &seldom: 90 * time.Second} {
			if _, err := informer.AddEventHandlerWithResyncPeriod(handler, period); err != nil {
				t.Fatal(err)
			}
		}
		runSynced(t, informer)
		forget := func() {
			synctest.Wait()
			for _, handler := range []*recorder{&never, &each, &seldom} {
				handler.take()
			}
		}
		relist := func() {
			source.ModifyDropWatch(newPod("b")) // so that the version of the watch is too old
			source.ResetWatch()
			settle(5 * time.Second) // longer than the wait before a list
		}
		forget()
		relist() // the resync timer starts again
		for _, handler := range []*recorder{&never, &each, &seldom} {
			handler.want(t, "update default/a 1→1", "update default/b 2→3")
		}

		time.Sleep(time.Minute) // only the handler each is due
		forget()
		relist()
		each.want(t, "update default/a 1→1", "update default/b 3→4")
		never.want(t, "update default/b 3→4")
		seldom.want(t, "update default/b 3→4")

		time.Sleep(time.Minute) // all that resync are due
		forget()
		relist()
		each.want(t, "update default/a 1→1", "update default/b 4→5")
		seldom.want(t, "update default/a 1→1", "update default/b 4→5")
		never.want(t, "update default/b 4→5")
	})
}
