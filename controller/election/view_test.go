package election

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// record returns a Lease with a version and a holder, for 15 s; the holder "" is a released one.
func record(holder, version string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "rollout", ResourceVersion: version}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &holder, new(int32(15))
	return lease
}

// TestC11_HeldFollowsWhatWasObserved observes the Lease in steps, a second apart, each with
// holder and version: an event; a read that was sent after the step before; or a late read, which
// was sent before that step. "free" is a released Lease, and "gone" a deleted one.
func TestC11_HeldFollowsWhatWasObserved(t *testing.T) {
	tests := map[string]struct {
		steps string
		want  time.Duration
	}{
		"nothing was observed":   {"", 15 * time.Second},
		"there is none":          {"read gone 10", 0},
		"held":                   {"event other 10", 14 * time.Second},
		"released":               {"event other 10, event free 11", 0},
		"the same record again":  {"event other 10, event other 11", 13 * time.Second},
		"another holder":         {"event other 10, event third 11", 14 * time.Second},
		"an old event":           {"event other 10, event free 9", 13 * time.Second},
		"the present term":       {"event own 10", 0},
		"the last term":          {"event previous 10", 0},
		"deleted":                {"event other 10, event gone 11", 14 * time.Second},
		"released, then deleted": {"event free 10, event gone 11", 0},
		// Another candidate may have taken the Lease between the two, and may hold it.
		"released, and then not found": {"event free 10, read gone", 14 * time.Second},
		"own, and then not found":      {"event previous 10, read gone", 14 * time.Second},
		"still not found":              {"event other 10, read gone, read gone", 13 * time.Second},
		"a read that was overtaken":    {"event other 10, late free 9", 13 * time.Second},
		"a late not found":             {"event free 9, event free 10, late gone", 0},
		"a late read that is newer":    {"event other 10, late free 11", 0},
		"a server that went back":      {"event other 10, read free 5", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *world) {
				e := t.elector(options("a"))
				e.identity, e.previous = "own", "previous"
				before := ""
				for text := range strings.SplitSeq(test.steps, ", ") {
					present := e.view.Version(e.o.Name)
					e.step(text, present, before)
					before = present
					time.Sleep(time.Second)
				}
				if held := max(e.held(), 0); held != test.want {
					t.Errorf("it is held for %v, want %v", held, test.want)
				}
			})
		})
	}
}

// step carries out a step at a version of the view, with another one before the step before.
func (e *Elector) step(text, present, before string) {
	words := append(strings.Fields(text), "", "", "")
	holder, version := strings.TrimPrefix(words[1], "free"), words[2]
	lease := record(holder, version)
	if words[0] == "event" {
		e.observe(lease, holder == "gone")
		return
	}
	if holder == "gone" {
		lease = nil
	}
	sentAt, isRead := map[string]string{"read": present, "late": before}[words[0]]
	if !isRead {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.view.Read(e.o.Name, lease, sentAt)
}
