package fanout

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// crashing makes the test binary the program that crashes.
const crashing = "FANOUT_TEST_CRASH"

func TestP11_PanicCrashesTheProcess(t *testing.T) {
	if os.Getenv(crashing) != "" {
		crash(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), crashing+"=1")
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); !ok {
		t.Fatalf("the process ended with %v, want a crash:\n%s", err, out)
	}
	for _, want := range []string{"told: roller default/web no such thing true\n", "panic: no such thing",
		`handler "roller" of informer webs panicked at object "default/web": no such thing`, "fanout.explode"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "survived") {
		t.Errorf("the subscription's end was reported before the crash:\n%s", out)
	}
}

func crash(t *testing.T) {
	l := started(Options[*object]{Name: func() string { return "webs" }})
	s, err := l.Subscribe(func(change.Change[*object]) { explode() }, nil, SubscriptionOptions{
		Name: "roller",
		OnPanic: func(p Panic) {
			fmt.Println("told:", p.Handler, p.Key, p.Value, strings.Contains(string(p.Stack), "explode"))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Publish([]change.Change[*object]{{Type: change.Added, Key: "default/web", New: &object{}}}, 1)
	<-s.Done()
	fmt.Println("survived")
	os.Exit(0)
}

func explode() { panic("no such thing") }

// TestP11_PanicLeadsToARuntimeError has a handler index an empty slice.
func TestP11_PanicLeadsToARuntimeError(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var reported Panic
		var seen []string
		_, err := r.log.Subscribe(func(n change.Change[*object]) { seen[len(n.Key)] = n.Key }, nil,
			SubscriptionOptions{IsolatePanics: true, OnPanic: func(p Panic) { reported = p }})
		if err != nil {
			t.Fatal(err)
		}
		r.publish("a", modify)
		synctest.Wait()
		if _, ok := errors.AsType[runtime.Error](&reported); !ok {
			t.Errorf("reported %v, want a runtime error", &reported)
		}
		other := &Panic{Key: strings.Repeat("k", 1<<20), Value: "no error"}
		if err := errors.Unwrap(other); err != nil || len(other.Error()) > 2*maxKey {
			t.Errorf("%.1000v unwraps to %v", other, err)
		}
	})
}
