package handover

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

// podOf returns a member's identity as that of a pod of a Deployment: "images" is the group, and
// the random parts have as many letters as Kubernetes and this package give them.
func podOf(random *rand.Rand, generation string) ID {
	text := func(letters string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	return ID(fmt.Sprintf("images.images-controller-%s-%s-%s", generation, text("bcdfghjklmnpqrstvwxz2456789", 5),
		text("abcdefghijklmnopqrstuvwxyz234567", 10)))
}

// TestS7_TheSizeOfTheMap measures the text of a map, as each write sends it to each member.
func TestS7_TheSizeOfTheMap(t *testing.T) {
	const settled, moving = 5 << 10, 10 << 10
	for _, n := range []int{8, 64, 256} {
		random := rand.New(rand.NewPCG(1, 2))
		old, fresh := make([]ID, n), make([]ID, n)
		for i := range n {
			old[i], fresh[i] = podOf(random, "7c9d8f6b5d"), podOf(random, "5f6d7c8b9c")
		}
		entries := func(change func(i int, e *Entry)) Map {
			m := Map{Entries: make([]Entry, slot.Count)}
			for i := range m.Entries {
				m.Entries[i] = Entry{Owner: old[random.IntN(n)], Epoch: 38 + random.Uint64N(5), Left: Reached,
					Weight: Weigh(900 + random.IntN(200))}
				if n == slot.Count {
					m.Entries[i].Owner = old[i]
				}
				change(i, &m.Entries[i])
			}
			return m
		}
		handed := func(i int, e *Entry) {
			e.Owner, e.Left = fresh[i%n], Known
			e.Versions = map[string]string{"deployments.apps held": fmt.Sprint(1234567890 + random.IntN(1e5)),
				"configmaps held": fmt.Sprint(1234567890 + random.IntN(1e5))}
		}
		named := func(i int, e *Entry) { e.Next, e.Ready = fresh[i%n], i%2 == 0 }
		for _, c := range []struct {
			name string
			most int
			m    Map
		}{
			{"a minute after the last move", settled, entries(func(int, *Entry) {})},
			{"a rollout: all have a next owner", moving, entries(named)},
			{"a rollout: all were handed over, none is open", moving, entries(handed)},
			{"a rollout: half and half", moving, entries(func(i int, e *Entry) {
				if named(i, e); i%2 == 0 {
					e.Next, e.Ready = "", false
					handed(i, e)
				}
			})},
		} {
			text, err := c.m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%3d members, %s: %d bytes", n, c.name, len(text))
			if len(text) > c.most {
				t.Errorf("the map has %d bytes, want at most %d", len(text), c.most)
			}
			if back, err := Decode(text); err != nil || !reflect.DeepEqual(back, c.m) {
				t.Errorf("the map changes on the way: %v", err)
			}
		}
	}
}

func TestS1_AMapThatCannotBeRead(t *testing.T) {
	text, err := Map{Entries: make([]Entry, slot.Count)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	short, _ := Map{Entries: make([]Entry, 3)}.Encode()
	for _, text := range []string{"", "1", "1 ", "1 %", text[:len(text)/2], short} {
		if _, err := Decode(text); err == nil || text != "" && errors.Is(err, ErrFormat) {
			t.Errorf("%.30q: the error is %v", text, err)
		}
	}
	for _, text := range []string{"2 " + text, `{"entries":[]}`} {
		_, err := Decode(text)
		if !errors.Is(err, ErrFormat) {
			t.Errorf("%.30q: the error is %v", text, err)
		}
		if err != nil && !strings.Contains(err.Error(), "format") {
			t.Errorf("the error does not say what to do: %v", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	text, err := Map{Entries: make([]Entry, slot.Count)}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Decode(text)
		if err == nil && len(m.Entries) != slot.Count+len(m.Controllers) {
			t.Errorf("%d entries", len(m.Entries))
		}
		DecodeRecord(text) //nolint:errcheck // it does not panic
	})
}

func TestS7_TheMapOnTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]ID{"", "a", "b", "c"})
		m := Map{Entries: make([]Entry, slot.Count), Controllers: []string{"x", ""}}
		m.Entries = append(m.Entries, Entry{}, Entry{})
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			e := Entry{Owner: id.Draw(t, "owner"), Next: id.Draw(t, "next"),
				Epoch: rapid.Uint64().Draw(t, "epoch"), Weight: rapid.Uint32().Draw(t, "weight"),
				Left: rapid.SampledFrom([]Left{Unknown, Known, Reached}).Draw(t, "left")}
			e.Ready = e.Next != "" && rapid.Bool().Draw(t, "ready")
			if e.Left == Known {
				e.Versions = map[string]string{}
				for _, part := range []string{"pods", "jobs"} {
					if v := rapid.SampledFrom([]string{"", "7", "x/1"}).Draw(t, part); v != "" {
						e.Versions[part] = v
					}
				}
			}
			m.Entries[rapid.IntRange(0, len(m.Entries)-1).Draw(t, "entry")] = e
		}
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Decode(text); err != nil || !reflect.DeepEqual(back, m) {
			t.Errorf("the map changes on the way: %v", err)
		}
	})
}
