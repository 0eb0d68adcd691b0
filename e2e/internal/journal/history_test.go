package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

const (
	key = "team-000/c0"
	// duration is that of the Leases of the histories.
	duration = 5 * time.Second
)

// story is a history in which a serves all slots at first. Times are in seconds.
type story struct {
	History
	a, b *Process
}

func newStory() *story {
	s := &story{a: &Process{Name: "a"}, b: &Process{Name: "b"}}
	s.History = History{Lease: duration, Workers: 1, End: 30 * time.Second, Processes: []*Process{s.a, s.b}}
	s.join(s.a, 0)
	s.serve(s.a, 0, 1)
	return s
}

func seconds(at float64) time.Duration { return time.Duration(at * float64(time.Second)) }

func (s *story) add(p *Process, at float64, e Entry) {
	e.At, e.Member = seconds(at), p.Name+"-1"
	p.Entries = append(p.Entries, e)
}

// join begins a membership.
func (s *story) join(p *Process, at float64) {
	s.renew(p, at)
	s.add(p, at, Entry{Kind: Begin})
}

// renew adds a renewal, whose number is its time.
func (s *story) renew(p *Process, at float64) {
	s.add(p, at, Entry{Kind: Renew, Number: uint64(at * 10)})
	s.add(p, at, Entry{Kind: Renewed, Number: uint64(at * 10)})
}

// live renews a Lease to a time.
func (s *story) live(p *Process, from, to float64) {
	for at := from; at <= to; at++ {
		s.renew(p, at)
	}
}

func all(epoch uint64) map[int]uint64 {
	epochs := map[int]uint64{}
	for n := range slot.Count {
		epochs[n] = epoch
	}
	return epochs
}

func (s *story) serve(p *Process, at float64, epoch uint64) {
	s.add(p, at, Entry{Kind: Serve, Epochs: all(epoch)})
}

func (s *story) drain(p *Process, from, to float64) {
	s.add(p, from, Entry{Kind: Drain, Epochs: all(0)})
	s.add(p, to, Entry{Kind: Drained, Epochs: all(0)})
}

// call adds a call that takes a tenth of a second.
func (s *story) call(p *Process, at float64, number, version uint64) {
	s.add(p, at, Entry{Kind: Call, Number: number, Key: key, Version: version})
	s.add(p, at+0.1, Entry{Kind: Return, Number: number})
}

// write adds a call with a write, which is given at a time and has its answer at another one; 0 is
// no answer.
func (s *story) write(p *Process, at, given, answered float64, number, before, version uint64) {
	s.add(p, at, Entry{Kind: Call, Number: number, Key: key, Version: before})
	s.add(p, given, Entry{Kind: Write, Number: number, Call: number})
	s.add(p, given, Entry{Kind: Sent, Number: number})
	s.Applied = append(s.Applied, Applied{Process: p.Name, Number: number, Key: key, Version: version})
	if answered != 0 {
		s.add(p, answered, Entry{Kind: Answer, Number: number, Version: version})
		s.add(p, answered, Entry{Kind: Return, Number: number})
	}
}

func (s *story) change(at float64, version uint64) {
	s.Changes = append(s.Changes, Change{Key: key, Version: version, Sent: seconds(at), Answered: seconds(at)})
}

// handedOver is a story in which a hands its slots over in the fourth second, and b lives to the
// end.
func handedOver() *story {
	s := newStory()
	s.live(s.a, 1, 5)
	s.change(1, 10)
	s.write(s.a, 1, 1, 1.1, 1, 10, 11)
	s.drain(s.a, 4, 4.2)
	s.join(s.b, 3)
	s.serve(s.b, 4.5, 2)
	s.live(s.b, 4, 30)
	s.call(s.b, 5, 1, 11)
	return s
}

// crashed is a story in which a is killed in the fourth second, and b lives to the end.
func crashed() *story {
	s := newStory()
	s.live(s.a, 1, 3)
	s.a.Faults = []Fault{{Kind: "kill", From: seconds(4)}}
	s.join(s.b, 3)
	s.serve(s.b, 8.5, 2)
	s.live(s.b, 4, 30)
	return s
}

// heirKilled is a story in which a has drained for c, which is killed in the middle of the fourth
// second. b serves from a time on.
func heirKilled(at float64) *story {
	s := newStory()
	s.live(s.a, 1, 5)
	s.drain(s.a, 4, 4.2)
	c := &Process{Name: "c", Faults: []Fault{{Kind: "kill", From: seconds(4.5)}}}
	s.Processes = append(s.Processes, c)
	s.join(c, 3)
	s.add(c, 3.5, Entry{Kind: Warm, Epochs: all(0)})
	s.join(s.b, 3)
	s.serve(s.b, at, 2)
	s.live(s.b, 4, 30)
	return s
}

func TestHistoriesWithoutProblems(t *testing.T) {
	s := handedOver()
	r := s.Check()
	if len(r.Problems)+len(r.Slow) > 0 || r.Calls != 2 || r.Writes != 1 || r.Terms != 2 || r.InFlight+r.Late+r.Stale != 0 {
		t.Errorf("the result is %+v", r)
	}
	if len(r.HandOvers) != slot.Count || r.HandOvers[0].Kind != planned ||
		r.HandOvers[0].Took != 500*time.Millisecond {
		t.Errorf("the hand-overs are %+v", r.HandOvers[:1])
	}
	if moves := s.Moves(r, seconds(3), seconds(5)); len(moves) != slot.Count || moves[7] != 1 {
		t.Errorf("the moves are %v", moves)
	}

	s = crashed()
	s.write(s.a, 3.5, 3.9, 0, 1, 10, 21) // it was on its way, and applied after the call of b
	s.change(8.6, 20)
	s.call(s.b, 9, 1, 20)
	r = s.Check()
	if len(r.Problems)+len(r.Slow) > 0 || r.InFlight != 1 || r.Late != 1 {
		t.Errorf("the result is %+v", r)
	}
	heard := crashed()
	heard.a.Faults[0].IsHeard = true
	heard.add(heard.a, 4.5, Entry{Kind: Renew, Number: 45})
	if o := heard.Check().HandOvers[0]; o.Took != seconds(4) {
		t.Errorf("the hand-over is %+v", o)
	}
	busy := crashed()
	busy.change(6, 11)
	busy.add(busy.b, 9, Entry{Kind: Call, Number: 8, Key: key, Version: 10})
	busy.add(busy.b, 24, Entry{Kind: Return, Number: 8})
	busy.call(busy.b, 25, 1, 11)
	if r := busy.Check(); len(r.Slow) > 0 || r.Delays[0] != seconds(19) {
		t.Errorf("the delays are %v, too long are %q", r.Delays, r.Slow)
	}
	if o := heirKilled(8).Check().HandOvers[0]; o.Kind != "heir kill" || o.Took != seconds(3.5) {
		t.Errorf("the hand-over is %+v", o)
	}
	if o := r.HandOvers[0]; o.Kind != "kill" || o.Took != seconds(4.5) || o.Process != "a" {
		t.Errorf("the hand-over is %+v", o)
	}
}

func TestHistoriesWithProblems(t *testing.T) {
	for want, tell := range map[string]func() *story{
		"S1: b-1 calls team-000/c0 at 5s, while a-1 calls it from 3.5s to": func() *story {
			s := handedOver()
			s.add(s.a, 3.5, Entry{Kind: Call, Number: 9, Key: key, Version: 11})
			return s
		},
		"S1: b-1 calls team-000/c0 at 4s without its slot": func() *story {
			s := handedOver()
			s.b.Entries = append([]Entry{s.b.Entries[0], s.b.Entries[1],
				{At: seconds(4), Kind: Call, Member: "b-1", Number: 9, Key: key, Version: 11},
				{At: seconds(4.1), Kind: Return, Number: 9}}, s.b.Entries[2:]...)
			return s
		},
		"S1: b-1 serves slot 7 from 5s, and a-1 until 7s": func() *story {
			s := crashed()
			s.b = &Process{Name: "b"}
			s.Processes[1] = s.b
			s.join(s.b, 3)
			s.serve(s.b, 5, 2)
			s.live(s.b, 4, 30)
			return s
		},
		"S1: b-1 serves slot 7 with epoch 1, after a-1 with epoch 1": func() *story {
			s := handedOver()
			for _, e := range s.b.Entries {
				for n := range e.Epochs {
					e.Epochs[n] = 1
				}
			}
			return s
		},
		"S2: b-1 calls team-000/c0 at 5s with version 10, after a-1 has written version 11": func() *story {
			s := handedOver()
			for i, e := range s.b.Entries {
				if e.Kind == Call {
					s.b.Entries[i].Version = 10
				}
			}
			return s
		},
		"S2: a-1 has drained team-000/c0 at 4.2s, and its write of version 21 is applied after 5s": func() *story {
			s := handedOver()
			s.write(s.a, 2, 2.2, 0, 2, 11, 21)
			s.add(s.a, 3, Entry{Kind: Return, Number: 2})
			s.change(4.6, 20)
			s.call(s.b, 6, 2, 21)
			return s
		},
		"S3: a-1 gives a write of team-000/c0 to its client at 7.5s, 500ms after the end": func() *story {
			s := crashed()
			s.write(s.a, 6, 7.5, 0, 1, 10, 11)
			return s
		},
		"S3: version 12 of team-000/c0 is write 5 of a, which has not sent it so": func() *story {
			s := handedOver()
			s.Applied = append(s.Applied, Applied{Process: "a", Number: 5, Key: key, Version: 12})
			return s
		},
		"the server has not kept write 1 of a": func() *story {
			s := handedOver()
			s.Applied = nil
			return s
		},
		"S5: version 30 of team-000/c0 has no call": func() *story {
			s := handedOver()
			s.change(6, 30)
			return s
		},
		"S5: version 11 of team-000/c0, written at 6s, has no call for 19s, want at most 7.1s": func() *story {
			s := crashed()
			s.change(6, 11)
			s.call(s.b, 25, 1, 11)
			return s
		},
		"S5: slot 7 of a-1 is served by b-1 after 8s (restart), want at most 7s": func() *story {
			s := handedOver()
			s.a.Faults = nil
			s.a.Entries = s.a.Entries[:len(s.a.Entries)-2]
			s.b = &Process{Name: "b"}
			s.Processes[1] = s.b
			s.join(s.b, 3)
			s.serve(s.b, 17, 2)
			s.live(s.b, 4, 30)
			return s
		},
		"S5: slot 7 of a-1 is served by b-1 after 2.6s (planned), want at most 1.1s": func() *story {
			s := handedOver()
			s.b = &Process{Name: "b"}
			s.Processes[1] = s.b
			s.join(s.b, 3)
			s.serve(s.b, 6.6, 2)
			s.live(s.b, 4, 30)
			return s
		},
		"S5: slot 7 of a-1 is served by b-1 after 7.5s (heir kill), want at most 7s": func() *story {
			return heirKilled(12)
		},
		"S5: slot 7 of a-1 is served by b-1 after 4s (planned), want at most 1s": func() *story {
			s := heirKilled(8)
			s.Processes[2].Faults = nil
			return s
		},
		"S5: slot 7 is served by nobody since 7s": func() *story {
			s := crashed()
			s.Processes = s.Processes[:1]
			return s
		},
		"S6: b-1 is told that team-000/c0 is gone": func() *story {
			s := handedOver()
			s.add(s.b, 6, Entry{Kind: Gone, Number: 7, Key: key})
			return s
		},
	} {
		t.Run(want, func(t *testing.T) {
			r := tell().Check()
			if got := slices.Concat(r.Problems, r.Slow); !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("the problems are %q", got)
			}
		})
	}
}

// TestAJournalIsReadAsItWasWritten reads twice, while a line is half written.
func TestAJournalIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	p := NewProcess("a", path)
	var want strings.Builder
	for number := range uint64(3) {
		e := Entry{Kind: Call, Member: "m", Number: number, Key: key, Version: 7,
			Epochs: map[int]uint64{1: number}, Text: "text"}
		j.Note(e)
		want.WriteString(fmt.Sprintln(e))
		if err := p.Read(); err != nil {
			t.Fatal(err)
		}
	}
	half, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := half.WriteString(`{"kind":`); err != nil {
		t.Fatal(err)
	}
	if err := p.Read(); err != nil {
		t.Fatal(err)
	}
	got, last := "", time.Duration(0)
	for _, e := range p.Entries {
		if e.At < last {
			t.Errorf("an entry of %v comes after one of %v", e.At, last)
		}
		last, e.At = e.At, 0
		got += fmt.Sprintln(e)
	}
	if got != want.String() {
		t.Errorf("the entries are\n%s, want\n%s", got, want.String())
	}
}

func TestServing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	p := NewProcess("a", path)
	if err := p.Read(); err != nil || p.Serving().Len() != 0 {
		t.Errorf("before it begins, a process serves %v: %v", p.Serving(), err)
	}
	j, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		entry Entry
		want  string
	}{
		{Entry{Kind: Serve, Epochs: map[int]uint64{1: 1, 2: 1}}, "1-2"},
		{Entry{Kind: Drain, Epochs: map[int]uint64{1: 0}}, "2"},
		{Entry{Kind: Warm, Epochs: map[int]uint64{2: 0, 3: 0}}, "2"},
		{Entry{Kind: Call, Key: key}, "2"},
		{Entry{Kind: Closed}, ""},
	} {
		j.Note(step.entry)
		if err := p.Read(); err != nil {
			t.Fatal(err)
		}
		if got := p.Serving().String(); got != step.want {
			t.Errorf("after %s, slots %q are served, want %q", step.entry.Kind, got, step.want)
		}
	}
}
