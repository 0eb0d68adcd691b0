package shard

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings/shard/internal/handover"
)

// crowd is the number of members of TestS7_TheSizeOfTheMap.
var crowd = flag.Int("shard.crowd", 24, "members of the group whose map and writes are measured")

// TestS7_TheSizeOfTheMap has the identities of pods of a Deployment, and slots that have been
// handed over with the versions of two resources, in each state of a rollout.
func TestS7_TheSizeOfTheMap(t *testing.T) {
	for _, n := range []int{8, 64, 256} {
		id := func(i int) handover.ID {
			return handover.ID(fmt.Sprintf("images.images-controller-7c9d8f6b5d-%05d-abcdefghij", i))
		}
		quiet := handover.Map{Entries: make([]handover.Entry, Count)}
		rollout := handover.Map{Entries: make([]handover.Entry, Count)}
		for i := range Count {
			e := handover.Entry{
				Owner: id(i * 7919 % n), Epoch: uint64(40 + i%7), Weight: handover.Weigh(1600 + i),
				Left: handover.Reached,
			}
			quiet.Entries[i] = e
			e.Left, e.Next, e.Ready = handover.Known, id(n+i*6007%n), i%2 == 0
			e.Versions = map[string]string{
				"deployments.apps held": fmt.Sprint(1234567890 + 13*i),
				"configmaps held":       fmt.Sprint(1234567890 + 17*i),
			}
			rollout.Entries[i] = e
		}
		for name, c := range map[string]struct {
			m    handover.Map
			most int
		}{"quiet": {quiet, 5_000}, "full rollout": {rollout, 10_000}} {
			text, err := c.m.Encode()
			if t.Logf("%d members, %s: %d bytes", n, name, len(text)); err != nil || len(text) > c.most {
				t.Errorf("%d members, %s: the map has %d bytes, want at most %d: %v", n, name, len(text), c.most, err)
			}
		}
	}
}

// TestS7_TheMapKeepsNoVersions, a minute after the last move, and has few bytes during a rollout.
func TestS7_TheMapKeepsNoVersions(t *testing.T) {
	bubble(t, func(w *world) {
		var old []*process
		for i := range 8 {
			old = append(old, w.start(fmt.Sprintf("images-controller-7c9d8f6b5d-%05d", i), "1"))
		}
		time.Sleep(time.Minute)
		w.covered(old...)
		longest := 0
		for i, p := range old {
			w.start(fmt.Sprintf("images-controller-9c7d8f6b5d-%05d", i), "2")
			p.stop()
			for range 100 {
				time.Sleep(50 * time.Millisecond)
				longest = max(longest, len(w.lease("rollout").Annotations[entriesAnnotation]))
			}
		}
		time.Sleep(time.Minute + 5*time.Second)
		after := len(w.lease("rollout").Annotations[entriesAnnotation])
		for i, e := range w.stored().Entries {
			if e.Left != handover.Reached || len(e.Versions) > 0 {
				t.Fatalf("entry %d is %+v", i, e)
			}
		}
		if t.Logf("the map had up to %d bytes, and has %d", longest, after); longest > 10_000 || after > 5_000 {
			t.Errorf("the map had up to %d bytes, and has %d", longest, after)
		}
	})
}

func TestS7_AQuietGroupWritesOneLeasePerMemberAndFiveSeconds(t *testing.T) {
	bubble(t, func(w *world) {
		var all []*process
		for i := range *crowd {
			all = append(all, w.start(fmt.Sprintf("m%03d", i), "1"))
		}
		time.Sleep(2 * time.Minute)
		w.covered(all...)
		w.server.ForgetRequests()
		time.Sleep(10 * time.Minute)
		want := 120 * *crowd
		if n := w.leaseWrites(); n < want*95/100 || n > want*105/100 {
			t.Errorf("%d writes in ten minutes, want %d", n, want)
		}
		if n := w.mapWrites(); n > 1 {
			t.Errorf("the map was written %d times in ten minutes, and nothing moved", n)
		}
		if n := len(w.server.Requests().Of(by("", "list"))); n > *crowd {
			t.Errorf("%d lists", n)
		}
		text := w.lease("rollout").Annotations[entriesAnnotation]
		if t.Logf("%d members: the map has %d bytes", *crowd, len(text)); len(text) > 5_000 {
			t.Errorf("the map has %d bytes", len(text))
		}
	})
}

func TestS7_LeasesOfEndedMembersAreDeleted(t *testing.T) {
	bubble(t, func(w *world) {
		_, b, c := w.three()
		b.leave()
		c.crash()
		time.Sleep(2 * time.Minute)
		list, _, err := w.server.List(t.Context(), leaseResource, "ops")
		if err != nil || len(list) != 2 { // a member and the map
			t.Errorf("%d Leases are left, %v", len(list), err)
		}
	})
}
