package reflector

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/health"
)

// scenario runs a reflector over a script, in a bubble of virtual time.
type scenario struct {
	o       Options[object]
	asks    bool // of the script
	shards  bool // of the script
	j       *journal
	answers []answer // each request of the reflector, and no other, must be there
	pass    time.Duration
	during  func(r *Reflector[object], s *script) // called at once
	queue   []string                              // all that the queue must be given; nil if check looks
	check   checker
}

type checker func(t *testing.T, r *Reflector[object], s *script, j *journal)

// run runs a scenario until a time has passed, 5 minutes by default, and checks it.
func (c scenario) run(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		s, j := &script{t: t, asks: c.asks, shards: c.shards, answers: c.answers}, cmp.Or(c.j, &journal{})
		c.o.Name, c.o.Backoff.Jitter = "things.v1", -1
		c.o.WatchTimeout = cmp.Or(c.o.WatchTimeout, time.Hour)
		r := New(s, j, c.o)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		if c.during != nil {
			synctest.Wait()
			c.during(r, s)
		}
		after(cmp.Or(c.pass, 5*time.Minute))
		var want []string
		for _, a := range c.answers {
			want = append(want, a.expect)
		}
		same(t, "requests", s.requests(), want...)
		if c.queue != nil {
			same(t, "queue", j.read(), c.queue...)
		}
		if c.check != nil {
			c.check(t, r, s, j)
		}
		lastError := r.Health().LastError
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := r.Health().LastError; err != lastError {
			t.Errorf("the end of Run counts as the failure %v", err)
		}
		if state := r.Health().State; state != health.StateStopped || s.open != 0 {
			t.Errorf("after Run the state is %s, want Stopped; %d open streams", state, s.open)
		}
	})
}

// scenarios runs each scenario as a subtest.
func scenarios(t *testing.T, all map[string]scenario) {
	for name, c := range all {
		t.Run(name, c.run)
	}
}

// unless is a check that fails if health is wrong.
func unless(wrong func(h health.Watch) bool) checker {
	return func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
		if h := r.Health(); wrong(h) {
			t.Errorf("health is %+v", h)
		}
	}
}

// after lets virtual time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
