package debug

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidings-go/tidings/shard"
)

// group is a group of shards with a health and a map.
type group struct {
	health shard.Health
	slots  []shard.Entry
}

func (g *group) Health() shard.Health { return g.health }
func (g *group) Map() []shard.Entry   { return g.slots }

// groupOf returns a group of two members, of which b has crashed: it owns the odd slots.
func groupOf() *group {
	g := &group{health: shard.Health{
		Lease: "ops/rollout", State: shard.Member, Identity: "rollout.a", Planner: "rollout.a",
		Members: []shard.MemberHealth{
			{
				Identity: "rollout.a", Generation: "v1<", Live: true, Does: "takes", Slots: 128, Weight: 2048,
				Age: 2 * time.Second,
			},
			{Identity: "rollout.b", Generation: "v2", Slots: 128, Age: time.Minute},
			{Identity: "rollout.c", Live: true, Does: "gives", Refused: true, Lacks: []string{"images", "nodes"}},
			{Identity: "rollout.d", Live: true, Does: "starting", Joining: true},
		},
		Owned: 128, Serving: 127, Remaining: 9 * time.Second, Covered: 0.5, Nobody: "1,3,5", NotReady: "7", Late: "4",
		UncoveredFor: 46 * time.Second, LateFor: 11 * time.Minute, Tolerated: 45 * time.Second, Moving: 1, MovingFor: 3 * time.Second,
		Moves: shard.Moves{In: 128, Crashes: 7}, Failures: 2, LastError: errors.New("no route"),
	}}
	for i := range shard.Count {
		e := shard.Entry{Slot: i, Owner: "rollout.a", Epoch: 3, Age: time.Hour, Weight: 16, Cover: shard.Covered}
		if i%2 == 1 {
			e.Owner, e.Cover, e.CoverFor = "rollout.b", shard.Nobody, 46*time.Second
		}
		g.slots = append(g.slots, e)
	}
	g.slots[0].Next, g.slots[0].MovingFor = "rollout.<b>", 3*time.Second
	g.slots[2].Owner = ""
	g.slots[4].Cover, g.slots[4].CoverFor = shard.Late, 11*time.Minute
	g.slots[7].Cover, g.slots[7].Reason = shard.NotReady, "pods.v1 is <forbidden>"
	g.slots = append(g.slots, shard.Entry{
		Slot: shard.Count, Controller: "images", Owner: "rollout.<b>", Epoch: 3, Age: time.Hour, Cover: shard.Covered,
	})
	return g
}

const groupPath = "/group?name=ops%2Frollout"

// groupPages returns a world whose pages show a group alone.
func groupPages(t *testing.T, g *group) *world {
	w := &world{T: t, pages: New(Options{})}
	w.fatal(w.pages.Add(g))
	t.Cleanup(w.pages.Close)
	return w
}

func TestGroupPage(t *testing.T) {
	w := groupPages(t, groupOf())
	problems := []string{
		"has slots or controllers that nobody owns: 1,3,5", "has slots or controllers whose owners are not ready: 7",
		"is late for some slots or controllers, and nothing moves because of it: 4",
	}
	w.has("/", true, "Groups of shards", `href="group?name=ops%2Frollout"`, "50 %", "no route", "11m0s")
	w.has("/", true, problems...)
	w.has(groupPath, true, problems...)
	w.has(groupPath, true, "; nobody owns 1,3,5; not ready: 7, for up to 46s", "<dt>Late</dt><dd>4, for up to 11m0s",
		"v1&lt;", "2,048", ">takes<", "does not renew", ">gives, its writes are refused, cannot serve images, nodes<", ">joins<",
		"128 in, 0 out, 7 of those in after a crash", "and 98 more", "slot 2: no owner",
		"slot 0: rollout.a for 1h0m, epoch 3, weight 16, moves to rollout.&lt;b&gt; for 3s",
		"slot 1: rollout.b for 1h0m, epoch 3, weight 16, nobody for 46s", "weight 16, late for 11m0s",
		"weight 16, not ready for 46s: pods.v1 is &lt;forbidden&gt;")
	w.has(groupPath, true, `<th scope="row">images</th><td>rollout.&lt;b&gt;</td><td class="n">1h0m</td>`)
	w.has(groupPath, false, "<b>")
	page := w.get(groupPath)
	for part, want := range map[string]int{
		`<rect class="owner0" x`: 126, `<rect class="owner0 late" x`: 1, `<rect class="owner1 uncovered" x`: 1,
		`<rect class="owner1 uncovered nobody" x`: 127, `<rect class="unowned" x`: 1, "<circle": 1,
	} {
		if got := strings.Count(page, part); got != want {
			t.Errorf("the page has %q %d times, want %d", part, got, want)
		}
	}
	f := getJSON[GroupFigures](w, groupPath)
	if len(f.Slots) != shard.Count+1 || f.Slots[1].CoverFor != 46*time.Second || f.LastError != "no route" ||
		len(f.Members) != 4 || f.Covered != 0.5 || len(f.Problems) != 3 {
		t.Errorf("the figures are %+v", f.GroupRow)
	}
	if o := getJSON[Overview](w, "/"); len(o.Groups) != 1 || o.Groups[0].Lease != "ops/rollout" || len(o.Problems) != 3 {
		t.Errorf("the overview has %+v", o.Groups)
	}
	answer := httptest.NewRecorder()
	w.pages.ServeHTTP(answer, request("/group?name=x"))
	if want := `there is no group "x": there are ops/rollout`; answer.Code != http.StatusNotFound ||
		!strings.Contains(answer.Body.String(), want) {
		t.Errorf("%d %s, want %q", answer.Code, answer.Body, want)
	}
}

// TestGroupProblems: entries that are not covered, or late, are a problem from a time on.
func TestGroupProblems(t *testing.T) {
	h := groupOf().health
	if got := groupProblems(h, time.Now()); len(got) != 3 || got[0].Since.After(got[1].Since) || got[2].Since.IsZero() {
		t.Errorf("got %+v", got)
	}
	h.UncoveredFor, h.LateFor = h.Tolerated, mostLate
	if got := groupProblems(h, time.Now()); len(got) > 0 {
		t.Errorf("got %+v at the bounds", got)
	}
}

func TestGroupWithoutAMap(t *testing.T) {
	g := &group{health: shard.Health{
		Lease: "ops/rollout", State: shard.Joining, Map: errors.New("the map has no end"),
		LastError: errors.New("forbidden"), LastErrorAt: time.Now(), Polling: errors.New("no watch"),
	}}
	w := groupPages(t, g)
	w.has(groupPath, true, "There is no map that can be read: the map has no end", "cannot be joined: forbidden",
		"its Leases cannot be watched: no watch")

	stopped := *g
	stopped.health.State = shard.Stopped
	w = groupPages(t, &stopped)
	w.has("/", false, "cannot be joined")
}
