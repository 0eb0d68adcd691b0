package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
	"github.com/tidings-go/tidings/shard"
)

const (
	groupPage     = "group?name=ops%2Frollout"
	groupDuration = 3 * time.Second
	// leastShare is less than a fair share of three members.
	leastShare = shard.Count / 4
)

// groupScript is a function that returns a groupView.
//
//go:embed testdata/group.js
var groupScript string

// groupView is the page of a group in the browser.
type groupView struct {
	// Members are the rows of their table, by identity.
	Members map[string]memberView `json:"members"`
	// Moving and Uncovered are the slots of the map that are drawn as such, the latter also if
	// nobody owns them, which Nobody counts. Odd are the rows of all of them.
	Moving    int `json:"moving"`
	Uncovered int `json:"uncovered"`
	Nobody    int `json:"nobody"`
	Odd       int `json:"odd"`
	// Text is the text of the list of figures.
	Text     string   `json:"text"`
	Problems []string `json:"problems"`
}

// memberView is the row of a member. Drawn are the slots of the map in its colour.
type memberView struct {
	State string `json:"state"`
	Slots int    `json:"slots"`
	Drawn int    `json:"drawn"`
}

// of returns the row of a process; zero without one.
func (v groupView) of(process string) memberView {
	for identity, m := range v.Members {
		if strings.HasPrefix(identity, "rollout."+process+"-") {
			return m
		}
	}
	return memberView{}
}

// sharedBy reports whether the members are the given processes, all live, and the map is drawn
// with the slots that each owns.
func (v groupView) sharedBy(processes ...string) bool {
	sum := 0
	for _, process := range processes {
		m := v.of(process)
		if m.State != "takes" || m.Slots < leastShare || m.Drawn != m.Slots {
			return false
		}
		sum += m.Slots
	}
	return sum == shard.Count && len(v.Members) == len(processes)
}

// isCalm reports whether the page shows that no slot moves and all are covered.
func (v groupView) isCalm() bool {
	return v.Moving+v.Uncovered+v.Odd+len(v.Problems) == 0 && strings.Contains(v.Text, "Covered100 %") &&
		!strings.Contains(v.Text, "not ready")
}

// member is the part of one process in a group, with work that needs no calls.
type member struct {
	*shard.Group
	stop context.CancelFunc
	// gate has a token while it is open.
	gate chan struct{}

	mu    sync.Mutex
	ready shard.Set // guarded by mu
}

func (m *member) set(change func(ready shard.Set) shard.Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ready = change(m.ready)
}

func (m *member) Begin(guard.Term) { m.set(func(shard.Set) shard.Set { return shard.Set{} }) }

func (m *member) Serve(entries []shard.Owned) {
	m.set(func(ready shard.Set) shard.Set {
		for _, e := range entries {
			ready.Add(e.Number)
		}
		return ready
	})
}

func (m *member) Shut(entries shard.Set) {
	m.set(func(ready shard.Set) shard.Set { return ready.Minus(entries) })
}
func (m *member) Unshut(entries shard.Set) {
	m.set(func(ready shard.Set) shard.Set { return ready.Union(entries) })
}
func (m *member) Drop(entries shard.Set) { m.Shut(entries) }
func (*member) Calls(int) shard.Calls    { return shard.Calls{Known: true} }
func (*member) Abort(shard.Set, error)   {}
func (*member) Ends() <-chan struct{}    { return nil }
func (*member) Left(error)               {}

func (m *member) Work() shard.Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	return shard.Work{Started: true, Ready: m.ready}
}

// Warm waits until the gate is open.
func (m *member) Warm(ctx context.Context, _ shard.Set) error {
	select {
	case token := <-m.gate:
		m.gate <- token
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fleet is a group of the processes a, b and c, and a tab with the page of c.
type fleet struct {
	*tab
	members map[string]*member
	gate    chan struct{}
}

// openGroup starts a group, and waits until the page shows that its members share the slots.
func openGroup(t *testing.T) (*fleet, groupView) {
	t.Helper()
	f := &fleet{
		tab: &tab{T: t, server: leasetest.Start(t, apisim.Options{})}, members: map[string]*member{},
		gate: make(chan struct{}, 1),
	}
	f.gate <- struct{}{}
	f.join("a")
	ctx, cancel := context.WithTimeout(t.Context(), browserTimeout)
	defer cancel()
	if !until(ctx, func() bool { return f.members["a"].Health().Owned == shard.Count }) {
		t.Fatalf("the first member has %+v", f.members["a"].Health())
	}
	f.join("b")
	f.join("c")
	f.serve(debug.Options{}, f.members["c"])
	f.start(browserTimeout)
	f.run(chromedp.Navigate(f.url+groupPage), chromedp.WaitVisible("h1"))
	return f, f.sees("three members share the slots", func(v groupView) bool {
		return v.sharedBy("a", "b", "c") && v.isCalm()
	})
}

func (f *fleet) join(process string) {
	f.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(f.T.Context()))
	m := &member{stop: stop, gate: f.gate}
	var err error
	m.Group, err = shard.Join(ctx, leasetest.Config(f.server, process), m, shard.Options{
		Namespace: leasetest.Namespace, Name: "rollout", Identity: process, Generation: "v1",
		Duration: groupDuration, Logger: slog.New(slog.DiscardHandler),
	})
	f.fatal(err)
	f.members[process] = m
	f.Cleanup(func() {
		stop()
		if err := m.Wait(); err != nil {
			f.Errorf("%s: %v", process, err)
		}
	})
}

// sees waits until the page, which is refreshed by itself, shows a state.
func (f *fleet) sees(state string, is func(groupView) bool) (v groupView) {
	f.Helper()
	seen := until(f.Context, func() bool {
		now := groupView{}
		if err := chromedp.Run(f.Context, chromedp.Evaluate(groupScript, &now)); err != nil {
			return false // the timeout has passed
		}
		v = now
		return is(v)
	})
	if !seen {
		text, _ := json.MarshalIndent(v, "", "  ") //nolint:errcheck // it has texts and numbers
		f.Fatalf("the page does not show that %s, but %s", state, text)
	}
	return v
}

// TestGroupPageWhenAMemberLeaves keeps the next owners from being ready, so that the page shows the
// hand-over.
func TestGroupPageWhenAMemberLeaves(t *testing.T) {
	f, before := openGroup(t)
	token := <-f.gate
	f.members["b"].stop()
	f.sees("the slots of a member that leaves move", func(v groupView) bool {
		leaver := v.of("b")
		return leaver.State == "leaving" && leaver.Slots == before.of("b").Slots &&
			leaver.Drawn == leaver.Slots && v.Moving == leaver.Slots && v.Odd > 0 && v.Uncovered == 0 &&
			len(v.Problems) == 0
	})
	f.examine("group-leaves")
	f.gate <- token
	f.sees("two members share the slots", func(v groupView) bool {
		return v.sharedBy("a", "c") && v.isCalm()
	})
}

// TestGroupPageWhenAMemberIsLost drops all requests of a member, and keeps its heirs from being
// ready, so that the page shows that no member calls for its slots.
func TestGroupPageWhenAMemberIsLost(t *testing.T) {
	f, before := openGroup(t)
	token := <-f.gate
	lost := f.server.Inject(leasetest.By("a", ""), apisim.Drop())
	t.Cleanup(lost.Lift) // before it leaves
	orphans := before.of("a").Slots
	// Its slots have new owners at once, unless these cannot write the map.
	held := f.server.Inject(apisim.Match{Verb: "update", Resource: "leases.coordination.k8s.io", Name: "rollout"},
		apisim.Refuse(http.StatusServiceUnavailable, 0))
	f.sees("nobody owns the slots of a member that is lost", func(v groupView) bool {
		return v.Nobody == orphans && strings.Contains(v.Text, "; nobody owns ")
	})
	held.Lift()
	f.sees("their new owners are not ready", func(v groupView) bool {
		return v.sharedBy("b", "c") && v.Uncovered == orphans && v.Nobody+v.Moving == 0 && v.Odd > 0 &&
			strings.Contains(v.Text, "; not ready: ")
	})
	f.sees("that is a problem", func(v groupView) bool {
		return v.Uncovered == orphans && len(v.Problems) == 1 &&
			strings.HasPrefix(v.Problems[0], "Error group ops/rollout has slots or controllers whose owners are not ready: ")
	})
	f.examine("group-uncovered")
	f.gate <- token
	f.sees("the heirs call for all slots", func(v groupView) bool {
		return v.sharedBy("b", "c") && v.isCalm()
	})
}
