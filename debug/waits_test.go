package debug

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidings-go/tidings/controller"
)

// TestWhyAKeyWaits: a key that has failed is on the pages of its controller and of itself, with its
// attempt, the time of the next one, and its error.
func TestWhyAKeyWaits(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.set("c1", "bad")
		w.pass(10 * time.Second)
		for _, path := range []string{"/controller?name=labels", "/key?key=a/c1"} {
			w.has(path, true, "its last call has failed", `<td class="n">2</td>`, "a bad value", `<td class="n">in 1`)
		}
		w.has("/controller?name=labels", true, "Keys that wait after an error</b>: 1", "Failed calls by their errors")
		f := getJSON[ControllerFigures](w, "/controller?name=labels")
		if len(f.Waits) != 1 || f.Waits[0].Key != "a/c1" || f.Waits[0].Attempt != 2 || !f.Waits[0].Next.After(time.Now()) {
			t.Errorf("the keys that wait are %+v", f.Waits)
		}
		if len(f.Failures) != 1 || f.Failures[0].Error != "a bad value" || f.Failures[0].Calls != 1 {
			t.Errorf("the failures are %+v", f.Failures)
		}
		k := getJSON[KeyFigures](w, "/key?key=a/c1")
		if len(k.Waits) != 1 || k.Waits[0].Controller != "labels" || k.Waits[0].State != controller.WaitBackingOff {
			t.Errorf("the key waits for %+v", k.Waits)
		}
	})
}

// TestFailuresHaveOneText: names and numbers in the errors do not matter.
func TestFailuresHaveOneText(t *testing.T) {
	var calls []controller.Call
	for n := range 9 {
		err := fmt.Errorf("configmaps %q not found, attempt %d", fmt.Sprint("x-", n), n)
		if n == 5 {
			err = errors.New("no quota")
		}
		calls = append(calls, controller.Call{Key: fmt.Sprint("a/", n/2), Error: err.Error()}, controller.Call{Key: "a/well"})
	}
	got := failuresOf(calls)
	if len(got) != 2 || got[0].Calls != 8 || got[0].Keys != 5 || len(got[0].Examples) != 5 || got[1].Error != "no quota" ||
		!strings.HasPrefix(got[0].Error, `configmaps "x-0" not found`) {
		t.Errorf("the failures are %+v", got)
	}
}

// TestTimesToCome are "now" once they have passed.
func TestTimesToCome(t *testing.T) {
	for want, at := range map[string]time.Time{
		"": {}, "now": time.Now().Add(-time.Second), "in 1m0s": time.Now().Add(time.Minute),
	} {
		if got := until(at); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
}
