package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// second is the unit of the model's time. Every operation takes one second, and a delay that the
// operation n sets ends n nanoseconds after a full second: so no two timers are due at once.
const second = int64(time.Second)

func modelOptions() Options[int] {
	return Options[int]{
		Workers: 3, Requeued: 100, Retried: 101, FirstDelay: time.Second + 7,
		MaxDelay: 20 * time.Second, Jitter: func() float64 { return 0 },
	}.withDefaults()
}

// modelKey is a key in the specification.
type modelKey struct {
	state    State
	since    int64
	order    int   // the order in which it entered the band
	waits    int64 // since when it is queued
	band     Band
	reasons  []Counted[int]
	untold   int
	failures int
	requeue  int64 // 0 without one
	gate     int64
	least    int64 // no change wakes it before
	changed  bool
	woken    bool
	flow     string
}

// model is the specification: it goes through all keys for each answer.
type model struct {
	o       Options[int]
	keys    map[string]*modelKey
	turns   []string // flows that may start a key
	workers int
	order   int
	now     int64
	starts  map[string]int64 // the last one of each flow
}

func (m *model) key(key string) *modelKey {
	if m.keys[key] == nil {
		m.keys[key] = &modelKey{band: none, flow: namespaceOf(key)}
	}
	return m.keys[key]
}

// settle removes flows from the turns that may not start a key, and appends those that now may.
func (m *model) settle() {
	ready := map[string]bool{}
	running := map[string]int{}
	for _, k := range m.keys {
		if k.state == Running {
			running[k.flow]++
		}
	}
	waiting := map[string]bool{}
	for _, k := range m.keys {
		if k.state == Queued {
			waiting[k.flow] = true
		}
	}
	for f := range waiting {
		isAlone := len(waiting) == 1
		for other, at := range m.starts {
			isAlone = isAlone && (other == f || at+int64(time.Minute) <= m.now)
		}
		ready[f] = running[f] < max(1, m.workers-1) || isAlone && running[f] < m.workers
	}
	maps.DeleteFunc(ready, func(_ string, isReady bool) bool { return !isReady })
	m.turns = slices.DeleteFunc(m.turns, func(f string) bool { return !ready[f] })
	for _, f := range slices.Sorted(maps.Keys(ready)) {
		if !slices.Contains(m.turns, f) {
			m.turns = append(m.turns, f)
		}
	}
}

func (m *model) enqueue(now int64, k *modelKey, b Band) {
	m.order++
	if k.state != Queued {
		k.waits = now
	}
	k.state, k.since, k.band, k.order = Queued, now, b, m.order
	m.settle()
}

func (m *model) note(k *modelKey, r Counted[int]) {
	for i := range k.reasons {
		if k.reasons[i].Reason == r.Reason {
			k.reasons[i].Count += r.Count
			return
		}
	}
	if len(k.reasons) == maxReasons {
		k.untold += r.Count
		return
	}
	k.reasons = append(k.reasons, r)
}

func (m *model) add(now int64, key string, a Ask[int]) {
	k := m.key(key)
	m.note(k, Counted[int]{a.Reason, 1})
	rank := func(since int64, b Band) int64 { return since + int64(b)*int64(m.o.Step) }
	switch {
	case k.state == Idle:
		m.enqueue(now, k, a.Band)
	case k.state == Queued:
		if a.Band < k.band && rank(now, a.Band) < rank(k.since, k.band) {
			m.enqueue(now, k, a.Band)
		}
	default:
		k.band = min(k.band, a.Band)
		k.changed = k.changed || k.state == Running && a.Band == Changes && !a.Echo
		if k.state == BackingOff && a.Band == Changes && !a.Echo {
			m.hasten(k)
		}
	}
}

func (m *model) hasten(k *modelKey) {
	k.gate = min(k.gate, max(k.since+int64(m.o.FirstDelay), k.least))
}

func (m *model) expire(now int64) {
	m.now = now
	m.settle()
	for {
		var first *modelKey
		var name string
		due, isGate := now+1, false
		for key, k := range m.keys {
			if k.requeue != 0 && k.requeue < due {
				first, name, due, isGate = k, key, k.requeue, false
			}
			if k.gate != 0 && k.gate < due {
				first, name, due, isGate = k, key, k.gate, true
			}
		}
		switch {
		case first == nil:
			return
		case isGate:
			m.wake(now, first)
		default:
			first.requeue = 0
			m.add(now, name, Ask[int]{Band: Requeues, Reason: m.o.Requeued})
		}
	}
}

func (m *model) wake(now int64, k *modelKey) {
	k.gate = 0
	m.enqueue(now, k, min(k.band, Requeues))
}

func (m *model) take(now int64) (Item[int], bool) {
	if len(m.turns) == 0 {
		return Item[int]{}, false
	}
	flow := m.turns[0]
	var key string
	var k *modelKey
	for name, other := range m.keys {
		if other.state == Queued && other.flow == flow && (k == nil || m.before(other, k)) {
			key, k = name, other
		}
	}
	item := Item[int]{
		Key: key, Failures: k.failures, Band: k.band, Reasons: k.reasons,
		MoreReasons: k.untold, Waited: time.Duration(now - k.waits),
	}
	k.state, k.since, k.band, k.changed, k.woken, k.reasons, k.untold = Running, now, none, false, false, nil, 0
	m.turns = append(m.turns[1:], flow)
	m.starts[flow] = now
	m.settle()
	return item, true
}

func (m *model) before(a, b *modelKey) bool {
	ra, rb := a.since+int64(a.band)*int64(m.o.Step), b.since+int64(b.band)*int64(m.o.Step)
	return ra < rb || ra == rb && (a.band < b.band || a.band == b.band && a.order < b.order)
}

func (m *model) done(now int64, item Item[int], o Outcome) {
	k := m.keys[item.Key]
	k.state, k.since = Idle, now
	m.settle()
	switch o.Result {
	case Park:
		k.state = Parked
		for _, r := range item.Reasons {
			m.note(k, r)
		}
		k.untold += item.MoreReasons
		k.band = min(k.band, item.Band)
		if k.woken {
			m.wake(now, k)
		}
		return
	case Retry:
		k.failures++
		k.requeue = 0
		delay := m.o.FirstDelay << (k.failures - 1)
		delay = max(min(delay, m.o.MaxDelay), o.Least)
		k.least = now + int64(o.Least)
		if o.After > 0 {
			delay, k.least = o.After, now+int64(o.After)
		}
		m.note(k, Counted[int]{m.o.Retried, 1})
		k.band = min(k.band, Requeues)
		k.state, k.gate = BackingOff, now+int64(delay)
		if k.changed {
			m.hasten(k)
		}
		return
	}
	k.failures, k.requeue = 0, 0
	if o.Result == Succeed && o.After > 0 {
		k.requeue = now + int64(o.After)
	}
	if k.band != none {
		m.enqueue(now, k, k.band)
	}
}

// story applies operations that bytes choose to a schedule and to the model, and compares them.
func story(t *testing.T, ops []byte) {
	s := newSchedule(modelOptions())
	m := &model{o: modelOptions(), keys: map[string]*modelKey{}, workers: 3, starts: map[string]int64{}}
	var running []Item[int]
	now := int64(0)
	for n := 0; len(ops) >= 3; n, ops = n+1, ops[3:] {
		now += second * int64(1+ops[2]%4)
		key := fmt.Sprintf("%c/%d", 'a'+ops[1]%3, ops[1]/3%5)
		delay := time.Duration(int64(ops[2]/4)*second + int64(n+1))
		ask := Ask[int]{Band: Band(ops[2] % bands), Reason: int(ops[2] % 11), Echo: ops[2]%5 == 0}
		s.expire(now)
		m.expire(now)
		switch ops[0] % 8 {
		case 0, 1:
			s.add(now, key, ask)
			m.add(now, key, ask)
		case 2, 3:
			got, ok := s.take(now, nil)
			want, wantOK := m.take(now)
			want.entry, want.began = got.entry, got.began
			if ok != wantOK || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("operation %d: take is %+v, %v; want %+v, %v", n, got, ok, want, wantOK)
			}
			if ok {
				running = append(running, got)
			}
		case 4, 5:
			if len(running) == 0 {
				continue
			}
			i := int(ops[1]) % len(running)
			o := Outcome{Result: Result(ops[2] % 4)}
			switch ops[2] / 64 {
			case 1:
				o.After = delay
			case 2:
				o.Least = delay
			}
			if err := s.done(now, running[i], o); err != nil {
				t.Fatalf("operation %d: %v", n, err)
			}
			m.done(now, running[i], o)
			running = slices.Delete(running, i, i+1)
		case 6:
			if k := m.keys[key]; k != nil && k.state == Parked {
				i, _ := s.index.get(key)
				s.wake(now, i)
				m.wake(now, k)
			} else if k != nil && k.state == Running && ops[2]%3 == 0 {
				i, _ := s.index.get(key)
				s.wake(now, i)
				k.woken = true
			} else if ops[2]%2 == 0 {
				s.requeue(now, key)
				if k := m.key(key); k.state == BackingOff {
					k.gate = min(k.gate, max(now, k.least))
				}
				m.key(key).requeue = 0
				m.add(now, key, Ask[int]{Band: Requeues, Reason: m.o.Requeued})
			}
		case 7:
			workers := 1 + int(ops[2]%4)
			s.setWorkers(now, workers)
			m.workers = workers
			m.settle()
		}
		compare(t, n, s, m)
	}
}

// compare checks that a schedule and the model agree on every key.
func compare(t *testing.T, n int, s *schedule[int], m *model) {
	t.Helper()
	for key, k := range m.keys {
		i, ok := s.index.get(key)
		if !ok {
			if k.state != Idle || k.requeue != 0 {
				t.Fatalf("operation %d: %s is forgotten, want %+v", n, key, k)
			}
			if k.failures = 0; len(k.reasons) > 0 {
				t.Fatalf("operation %d: %s is forgotten with reasons %v", n, key, k.reasons)
			}
			continue
		}
		e := s.entries.at(i)
		due, _ := s.timers.due(i)
		if e.state != k.state || int(e.failures) != k.failures || due != max(k.requeue, k.gate) ||
			k.requeue > 0 && k.gate > 0 || e.state != Idle && e.band != k.band {
			t.Fatalf("operation %d: %s is %+v, due %d; want %+v", n, key, *e, due, k)
		}
	}
	if s.index.used == 0 && (len(s.flows) > 0 || len(s.timers.heap) > 0 || s.entries.used > 0 ||
		s.reasons.used > 0) {
		t.Fatalf("operation %d: an empty schedule keeps %d flows, %d timers, %d entries, %d reasons",
			n, len(s.flows), len(s.timers.heap), s.entries.used, s.reasons.used)
	}
}

// TestModel compares the schedule with a specification that goes through all keys.
func TestModel(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprintf("seed_%d", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			ops := make([]byte, 3*600)
			for i := range ops {
				ops[i] = byte(random.UintN(256))
			}
			story(t, ops)
		})
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 1, 2, 2, 0, 0, 4, 0, 2})
	f.Fuzz(func(t *testing.T, ops []byte) { story(t, ops) })
}
