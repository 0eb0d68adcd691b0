package handover

import (
	"errors"
	"testing"
	"time"
)

// story follows a conduct in virtual time, in steps of a second.
type story struct {
	*testing.T
	Conduct
	now time.Time
	Facts
}

func newStory(t *testing.T) *story {
	s := &story{T: t, now: dawn, Facts: Facts{Least: -1, Started: true}}
	s.pass(2 * time.Second)
	s.is(Takes)
	return s
}

func (s *story) pass(d time.Duration) {
	for range int(d / time.Second) {
		s.now = s.now.Add(time.Second)
		s.Conduct = s.Next(s.now, s.Facts)
	}
}

func (s *story) is(want State) {
	s.Helper()
	if s.State() != want {
		s.Fatalf("it %s after %v, want that it %s", s.State(), s.now.Sub(dawn), want)
	}
}

func TestS1_AMemberThatDoesNotStart(t *testing.T) {
	s := &story{T: t, now: dawn, Facts: Facts{Lacks: 1, Least: -1}}
	s.pass(59 * time.Second)
	s.is(Starting)
	s.pass(3 * time.Second)
	s.is(Takes)
}

func TestS1_AMemberThatLacksMoreThanOthers(t *testing.T) {
	s := newStory(t)
	s.Lacks, s.Least = 1, 1
	s.pass(time.Hour)
	s.is(Takes)
	s.Least = 0
	s.pass(119 * time.Second)
	s.is(Takes)
	s.pass(3 * time.Second)
	s.is(Gives)
	for _, able := range []time.Duration{1, 2, 4, 8, 10, 10} {
		s.Lacks = 0
		s.pass(able*time.Minute - time.Second)
		s.is(Gives)
		s.pass(2 * time.Second)
		s.is(Takes)
		s.Lacks = 1
		s.pass(2*time.Minute + 2*time.Second)
		s.is(Gives)
	}
	s.Lacks = 0
	s.pass(90 * time.Minute)
	s.is(Takes)
	s.Lacks = 1
	s.pass(3 * time.Minute)
	s.is(Gives)
	s.Lacks = 0 // the times before are an hour ago
	s.pass(61 * time.Second)
	s.is(Takes)
}

func TestS1_AMemberWhoseCallsHang(t *testing.T) {
	s := newStory(t)
	s.Hung = true
	s.pass(time.Second)
	s.is(Gives)
	s.pass(time.Hour)
	s.is(Gives) // as long as they do
}

func TestS2_AnHeirDeclines(t *testing.T) {
	s := newStory(t)
	for _, declines := range []time.Duration{1, 2, 4, 8, 10, 10} {
		s.Failed += 3 // slots and controllers fail together
		s.pass(time.Second)
		s.is(Declines)
		s.Failed++
		s.pass(declines*time.Minute - 2*time.Second)
		s.is(Declines)
		s.pass(2 * time.Second)
		s.is(Takes)
	}
	s.Filled++
	s.pass(time.Second)
	s.Failed++
	s.pass(61 * time.Second)
	s.is(Takes)
	s.Leaving = true
	s.pass(time.Second)
	s.is(Leaving)
	s.Leaving = false
	s.pass(time.Second)
	s.is(Leaving)
}

func TestS1_RefusedWrites(t *testing.T) {
	r := Refusals{}.Refused(dawn).Refused(dawn.Add(20 * time.Second))
	if at := dawn.Add(29 * time.Second); !r.Pending() || r.Says(at) || r.End(at, true, true, at) != nil {
		t.Error("it says so too early")
	}
	at := dawn.Add(50 * time.Second)
	if !r.Says(at) {
		t.Error("it does not say so")
	}
	for _, c := range []struct {
		owns, drained bool
		other         time.Time
		ends          bool
	}{
		{owns: true}, {owns: true, other: dawn.Add(-1)}, {owns: true, other: dawn.Add(1), ends: true},
		{owns: true, other: dawn.Add(21 * time.Second)}, // its next write may be accepted, too
		{other: dawn.Add(1)}, {owns: true, drained: true, ends: true},
	} {
		if err := r.End(at, c.owns, c.drained, c.other); errors.Is(err, ErrRefused) != c.ends {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if r = r.Accepted(); r.Pending() || r.Says(at) || r.Probes(at) {
		t.Error("it does not forget")
	}
}

// TestS1_WritesWithoutAnAnswer count as refused ones, but one of them may have been the write that
// others seem to have made.
func TestS1_WritesWithoutAnAnswer(t *testing.T) {
	r, at := Refusals{}.Unanswered(dawn).Unanswered(dawn.Add(20*time.Second)), dawn.Add(50*time.Second)
	if !r.Pending() || !r.Says(at) || !r.Probes(at) {
		t.Error("it does not count")
	}
	if err := r.End(at, true, true, time.Time{}); !errors.Is(err, ErrRefused) {
		t.Errorf("once it has drained an entry: %v", err)
	}
	if err := r.End(at, true, false, dawn.Add(1)); err != nil {
		t.Errorf("after another write: %v", err)
	}
}

// TestS1_ProbesOfARefusedMember come after 1, 2, 4 and in the end every 30 s.
func TestS1_ProbesOfARefusedMember(t *testing.T) {
	r, at := Refusals{}, dawn
	for _, after := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		r = r.Refused(at)
		if at = at.Add(after * time.Second); r.Probes(at.Add(-1)) || !r.Probes(at) {
			t.Errorf("no probe after %d s", after)
		}
	}
}

func TestS2_TheStagesOfAnEnd(t *testing.T) {
	for _, c := range []struct {
		passed time.Duration
		heirs  bool
		want   Stage
	}{{0, true, Handing}, {15 * time.Second, true, Handing}, {20 * time.Second, true, Closing}, {0, false, Closing},
		{30 * time.Second, true, Over}} {
		if got := StageOf(dawn, 30*time.Second, dawn.Add(c.passed), c.heirs); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestS3_ALease(t *testing.T) {
	const length = 15 * time.Second
	at := func(s int) time.Time { return dawn.Add(time.Duration(s) * time.Second) }
	own := Record{Name: "g.a"}
	for _, c := range []struct {
		name             string
		s                Sight
		now              time.Time
		want             Standing
		mayEnd, mayClean bool
	}{
		{"renewed", Sight{true, true, false, dawn, length, own}, at(14), Live, false, false},
		{"run out", Sight{true, true, false, dawn, length, own}, at(15), Held, false, false},
		{"run out, and others had their turn", Sight{true, true, false, dawn, length, own}, at(16), Held, true, false},
		{"released", Sight{true, false, true, dawn, length, own}, at(1), Ended, false, false},
		{"released for long", Sight{true, false, true, dawn, length, own}, at(16), Ended, false, true},
		{"released, of something else", Sight{true, false, true, dawn, length, Record{}}, at(16), Ended, false, false},
		{"gone", Sight{false, false, false, dawn, length, own}, at(14), Held, false, false},
		{"gone for long", Sight{false, false, false, dawn, length, own}, at(16), Held, true, false},
		{"gone for long, as a read has found", Sight{false, false, true, dawn, length, own}, at(16), Ended, false, false},
		{"never seen", Sight{Since: dawn, Length: length}, at(1), Held, false, false},
	} {
		end, clean := c.s.MayEnd(c.now, time.Second), c.s.MayDelete("g.a", c.now, false)
		if got := c.s.Standing(c.now); got != c.want || end != c.mayEnd || clean != c.mayClean {
			t.Errorf("%s: %d, %v, %v", c.name, got, end, clean)
		}
		if c.s.MayDelete("g.a", c.now, true) {
			t.Errorf("%s: it may be deleted, and the map names it", c.name)
		}
	}
	if Turn(2, length) != 500*time.Millisecond || Turn(100, length) != time.Second {
		t.Error("the turns are wrong")
	}
	if MayMake(at(4), at(0), at(0)) || !MayMake(at(5), at(0), at(0)) || MayMake(at(29), at(0), at(28)) || !MayMake(at(30), at(0), at(29)) {
		t.Error("a map is made at the wrong time")
	}
}
