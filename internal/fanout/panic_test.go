package fanout

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/change"
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
	for _, want := range []string{"told: roller default/web no such thing true\n", "panic: no such thing", "fanout.explode"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "survived") {
		t.Errorf("the subscription's end was reported before the crash:\n%s", out)
	}
}

func crash(t *testing.T) {
	l := started(Options[*object]{})
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
