package fanout

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// step is one thing that happens to a log. Which handler it happens to is an
// index modulo their number.
type step struct {
	kind    stepKind
	changes []struct {
		key byte
		action
	}
	handler int
	calls   int // that a gate lets through
	options SubscriptionOptions
	settle  bool // wait until everything is idle or stuck
}

type stepKind string

const (
	stepPublish stepKind = "publish"
	stepJoin    stepKind = "join"
	stepRemove  stepKind = "remove"
	stepCalls   stepKind = "calls"
	stepRelease stepKind = "release"
	stepReplay  stepKind = "replay"
	stepMark    stepKind = "mark"
)

// readStep reads a step from the front of a script, and returns the rest.
func readStep(script []byte) (step, []byte) {
	next := func() byte {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return b
	}
	kinds := []stepKind{stepPublish, stepPublish, stepPublish, stepJoin, stepJoin, stepRemove, stepCalls, stepRelease, stepReplay, stepMark}
	code, which := next(), next()
	s := step{kind: kinds[int(code)%len(kinds)], settle: code >= 128, handler: int(which % 10)}
	switch s.kind {
	case stepPublish:
		for range 1 + which%60 {
			b := next()
			s.changes = append(s.changes, struct {
				key byte
				action
			}{b % 6, action(b / 6 % byte(actions))})
		}
	case stepJoin:
		s.options = SubscriptionOptions{
			Policy: []Policy{ConflateUpdates, ConflateState, Unbounded}[which/10%3],
			Limit:  1 + int(next()%30),
		}
	case stepCalls:
		s.calls = 1 + int(next()%40)
	}
	return s, script
}

// model is a log under a script.
type model struct {
	*rig
	handlers []*handler
	removed  []*handler
	marked   bool
}

// play performs one step and returns an error if a check fails after it.
func (m *model) play(s step) error {
	var h *handler
	if len(m.handlers) > 0 {
		h = m.handlers[s.handler%len(m.handlers)]
	}
	switch {
	case s.kind == stepPublish:
		var batch []change.Change[*object]
		for _, c := range s.changes {
			batch = append(batch, m.do("k"+strconv.Itoa(int(c.key)), c.action)...)
		}
		m.log.Publish(batch, len(m.state))
	case s.kind == stepJoin:
		m.handlers = append(m.handlers, m.join(s.handler%3 > 0, s.options))
	case s.kind == stepMark:
		m.rig.marked()
		m.marked = true
	case h == nil:
	case s.kind == stepRemove:
		h.Remove()
		m.handlers = append(m.handlers[:s.handler%len(m.handlers)], m.handlers[s.handler%len(m.handlers)+1:]...)
		m.removed = append(m.removed, h)
	case s.kind == stepRelease:
		h.release()
	case s.kind == stepReplay:
		m.log.Replay(h.Subscription, items(m.snapshot()))
	case s.kind == stepCalls && !h.open:
		for range s.calls {
			h.gate <- struct{}{}
		}
	}
	if s.settle {
		synctest.Wait()
	}
	return m.bounds()
}

// bounds checks the bounds that hold at every step.
func (m *model) bounds() error {
	const keys = 6
	live := len(m.state)
	for _, h := range m.handlers {
		st := h.Stats()
		counted := st.Pending - st.Initial
		most := h.limit
		switch {
		case st.Behind && h.policy == ConflateUpdates:
			// A run that was taken, and of each key that the handler knows an update
			// and a delete, of each that lives an add and an update, and the objects that came and
			// went unseen.
			most = max(most, largeChunk+2*keys+2*live+3*st.Unseen)
		case st.Behind:
			most = max(most, largeChunk+keys)
		case h.policy == Unbounded:
			continue
		}
		if counted > most {
			return fmt.Errorf("%v, limit %d, %d live keys: %+v, want at most %d pending", h.policy, h.limit, live, st, most)
		}
		if h.HasSynced() && !m.marked {
			return fmt.Errorf("synced before the mark")
		}
	}
	return nil
}

// finish lets everything run and checks every handler and the log itself.
func (m *model) finish() error {
	calls := make(map[*handler]int)
	synctest.Wait()
	for _, h := range m.removed {
		calls[h] = len(h.seen)
		h.release()
	}
	for _, h := range m.handlers {
		h.release()
	}
	synctest.Wait()
	for _, h := range m.handlers {
		if err := h.whole(m.cluster); err != nil {
			return fmt.Errorf("%v, limit %d: %w\nStats %+v", h.policy, h.limit, err, h.Stats())
		}
		if h.HasSynced() != m.marked {
			return fmt.Errorf("synced %v, marked %v", h.HasSynced(), m.marked)
		}
	}
	for _, h := range m.removed {
		<-h.Done()
		if h.err != nil {
			return fmt.Errorf("removed: %w", h.err)
		}
		if n := len(h.seen) - calls[h]; n > 1 {
			return fmt.Errorf("%d calls after removal, want at most the one that was running", n)
		}
	}
	return m.atRest()
}

// atRest checks that a log whose handlers are all idle retains nothing.
func (m *model) atRest() error {
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	if m.log.attached != len(m.handlers) || m.log.busy.Load() != 0 || m.log.tail.base != m.log.end.Load() || m.log.tail.next != nil {
		return fmt.Errorf("at rest: %d attached of %d, %d busy, tail at %d of %d",
			m.log.attached, len(m.handlers), m.log.busy.Load(), m.log.tail.base, m.log.end.Load())
	}
	for _, n := range m.log.tail.entries {
		if n.Key != "" {
			return fmt.Errorf("at rest: the log keeps %s", show(n))
		}
	}
	for _, h := range m.handlers {
		if h.node != m.log.tail || h.backlog != nil || h.reader.buffer != nil || h.run.calls != nil {
			return fmt.Errorf("at rest: a subscription keeps what it has delivered")
		}
	}
	return nil
}

// playScript plays publishes, joins, removals and blockings and checks at every step
// that the bound holds, in the end that every handler received the truth: its fold is the state,
// Old is always the state that it saw last, and adds, deletes and last updates are all there if its
// policy promises that.
func playScript(t *testing.T, script []byte) (failure error) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{rig: &rig{t: t, cluster: newCluster(), log: started(Options[*object]{Describe: describe})}}
		defer m.log.Close()
		for n := 0; len(script) > 0 && failure == nil; n++ {
			var s step
			s, script = readStep(script)
			if err := m.play(s); err != nil {
				failure = fmt.Errorf("after step %d, %s: %w", n, s.kind, err)
			}
		}
		if err := m.finish(); err != nil && failure == nil {
			failure = err
		}
	})
	return failure
}

func TestP10_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := playScript(t, rapid.SliceOfN(rapid.Byte(), 200, 2000).Draw(rt, "script")); err != nil {
			rt.Fatal(err)
		}
	})
}

func FuzzLog(f *testing.F) {
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 4000 {
			return // what more steps would show, shorter scripts show sooner
		}
		if err := playScript(t, script); err != nil {
			t.Error(err)
		}
	})
}

// TestP04_Race runs publisher, handlers of every policy and speed, joins,
// removals, replays and readers of the figures side by side; it is for the race
// detector.
func TestP04_Race(t *testing.T) {
	l := started(Options[*object]{Describe: describe})
	defer l.Close()
	var mu sync.Mutex // makes joins and replays see the state at the log's end
	c := newCluster()
	rounds := 3000
	type member struct {
		*witness
		*Subscription[*object]
		from int
		snap []change.Change[*object]
	}
	join := func(i int) member {
		mu.Lock()
		defer mu.Unlock()
		m := member{witness: newWitness(), from: len(c.history), snap: c.snapshot()}
		s, err := l.Subscribe(func(n change.Change[*object]) {
			m.see(n)
			for range i % 4 {
				runtime.Gosched()
			}
		}, items(m.snap), SubscriptionOptions{Policy: []Policy{ConflateUpdates, ConflateState, Block, Unbounded}[i%4], Limit: 1 + i*7%50})
		if err != nil {
			t.Error(err)
		}
		m.Subscription = s
		return m
	}
	stop := make(chan struct{})
	var background sync.WaitGroup
	for g := range 2 {
		background.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				m := join(i + g)
				runtime.Gosched()
				m.Stats()
				m.Remove()
				<-m.Done()
				if m.err != nil {
					t.Error(m.err)
				}
			}
		})
	}
	var members []member
	for i := range 12 {
		members = append(members, join(i))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range rounds {
		if err := l.AwaitRoom(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		var batch []change.Change[*object]
		for range random.IntN(5) + 1 {
			batch = append(batch, c.do("k"+strconv.Itoa(random.IntN(10)), action(random.IntN(int(actions))))...)
		}
		l.Publish(batch, len(c.state))
		m := members[i%len(members)]
		l.Replay(m.Subscription, items(c.snapshot()))
		mu.Unlock()
		m.Stats()
		if i == rounds/2 {
			l.MarkSynced()
		}
	}
	close(stop)
	background.Wait()
	for _, m := range members {
		<-m.Synced()
		for m.Stats().Pending > 0 || m.Stats().Behind {
			runtime.Gosched()
		}
		m.Remove()
		<-m.Done()
		h := handler{witness: m.witness, Subscription: m.Subscription, from: m.from, snap: m.snap}
		if h.err != nil {
			t.Fatalf("%v: %v", m.policy, h.err)
		}
		if err := compare(m.policy, m.told(len(m.snap)), c.history[m.from:]); err != nil {
			t.Errorf("%v: %v", m.policy, err)
		}
		if fmt.Sprint(m.view) != fmt.Sprint(c.state) {
			t.Errorf("%v: the fold is not the state", m.policy)
		}
	}
}
