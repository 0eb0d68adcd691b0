package debug

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/see/gather"
)

// KeyWait says why a key waits in a controller.
type KeyWait struct {
	Controller string `json:"controller"`
	controller.Wait
}

// waitTables are the tables of keys that wait, in the order of a page.
var waitTables = []struct {
	state   controller.WaitState
	caption string
}{
	{controller.WaitBackingOff, "Keys that wait after an error"},
	{controller.WaitTerminal, "Keys that wait for a change after a Terminal error"},
	{controller.WaitHeldBack, "Keys that are held back until a cache shows their writes"},
	{controller.WaitRunning, "Running calls"},
	{controller.WaitQueued, "Queued keys"},
}

// WaitTable has the keys that wait in one state, those that have waited for the longest time first.
type WaitTable struct {
	Caption string
	State   controller.WaitState
	// Count is the number of all.
	Count int
	Waits []controller.Wait
}

// waitTablesOf returns the tables of a controller, without empty ones.
func waitTablesOf(c controller.Health, waits []controller.Wait) (tables []WaitTable) {
	for _, of := range waitTables {
		t := WaitTable{Caption: of.caption, State: of.state}
		for _, w := range waits {
			if w.State == of.state {
				t.Waits = append(t.Waits, w)
			}
		}
		if len(t.Waits) > 0 {
			t.Count = max(c.KeysIn(of.state), len(t.Waits)) // the two were read one after the other
			tables = append(tables, t)
		}
	}
	return tables
}

// keyWaits says why a key waits, in each controller.
func keyWaits(all []gather.Controller, key string) (found []KeyWait) {
	for _, c := range all {
		for _, w := range c.Waits(key) {
			found = append(found, KeyWait{c.Health.Name, w})
		}
	}
	return found
}

// Failures are failed calls whose errors have one text, but for what is quoted in it.
type Failures struct {
	// Error is the newest of the errors.
	Error string    `json:"error"`
	Calls int       `json:"calls"`
	Keys  int       `json:"keys"`
	Last  time.Time `json:"last"`
	// Examples are up to five of the keys, the newest first.
	Examples []string `json:"examples"`
}

// mostExamples bounds Failures.Examples.
const mostExamples = 5

// quoted is what differs in the texts of errors of one kind: names and numbers.
var quoted = regexp.MustCompile(`"[^"]*"|\b[0-9a-f]*[0-9][0-9a-f]*\b`)

// failuresOf groups failed calls, the newest first, by the texts of their errors. The most frequent
// failures come first.
func failuresOf(calls []controller.Call) []Failures {
	var groups []Failures
	at, keys := map[string]int{}, map[string]map[string]bool{}
	for _, c := range calls {
		if c.Error == "" {
			continue
		}
		text := quoted.ReplaceAllString(c.Error, "…")
		n, ok := at[text]
		if !ok {
			n, at[text], keys[text] = len(groups), len(groups), map[string]bool{}
			groups = append(groups, Failures{Error: c.Error, Last: c.Began})
		}
		g := &groups[n]
		g.Calls++
		if !keys[text][c.Key] {
			keys[text][c.Key] = true
			if g.Keys++; g.Keys <= mostExamples {
				g.Examples = append(g.Examples, c.Key)
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b Failures) int {
		return cmp.Or(cmp.Compare(b.Keys, a.Keys), cmp.Compare(b.Calls, a.Calls))
	})
	return groups
}
