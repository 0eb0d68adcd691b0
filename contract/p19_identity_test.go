package contract_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/tidings-go/tidings"
)

// TestP19_EndsOfWhatTheHandlerKnows: while a handler is behind, the object that it knows gives way
// to others, in any way. Whatever its policy: it receives ends of objects that it knows alone, and
// its events add up to the cache.
func TestP19_EndsOfWhatTheHandlerKnows(t *testing.T) {
	for _, policy := range []tidings.Policy{
		tidings.PolicyConflateUpdates, tidings.PolicyConflateState, tidings.PolicyBlock, tidings.PolicyUnbounded,
	} {
		for _, test := range []struct {
			steps string // + creates x, - deletes it, | does the rest while the watch is cut
			state string // the last event of x under PolicyConflateState
		}{
			{"-", "Deleted default/x 0"},
			{"-+", "Updated default/x 0→1"},
			{"-+-", "Deleted default/x tombstone 0"},
			{"-+-+", "Updated default/x 0→3"},
			{"-+-+-", "Deleted default/x tombstone 0"},
			{"|-+", "Updated default/x 0→2"},
			{"|-+|-", "Deleted default/x tombstone 0"},
			{"-+|-+|-+-", "Deleted default/x tombstone 0"},
		} {
			t.Run(policy.String()+" "+test.steps, func(t *testing.T) {
				property(t, func(w *world) { endsWhatIsKnown(w, policy, test.steps, test.state) })
			})
		}
	}
}

func endsWhatIsKnown(w *world, policy tidings.Policy, steps, state string) {
	l := &ledger{w: w}
	w.followers = append(w.followers, l)
	limit := 1
	if policy == tidings.PolicyBlock {
		limit = 100
	}
	l.registration = w.probe.handle(l.Handle, tidings.HandlerOptions{Policy: policy, Limit: limit})
	w.create("x", "0")
	w.create("other", "0")
	w.start()
	l.Take()
	l.Block()
	w.update("other", "1") // its call is running: what comes after it is not of its run
	synctest.Wait()
	w.update("other", "2")
	cut := false
	for n, step := range steps {
		switch step {
		case '+':
			w.create("x", fmt.Sprint(n))
		case '-':
			w.remove("x")
		case '|':
			if cut = !cut; cut {
				w.gate.set(refuse(http.StatusGone, "Expired"))
				w.server.CutConnections()
			} else {
				w.gate.set(nil)
				w.settle()
			}
		}
		if !cut {
			synctest.Wait() // the handler's backlog has each change
		}
	}
	w.gate.set(nil)
	w.settle()
	l.Unblock()
	synctest.Wait()
	last := ""
	for _, e := range l.Take() {
		if e.Key == "default/x" {
			last = e.String()
		}
	}
	if policy == tidings.PolicyConflateState && last != state {
		w.Errorf("the last event is %q, want %q", last, state)
	}
	l.sum()
}
