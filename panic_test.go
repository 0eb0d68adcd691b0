package tidings_test

import (
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
)

// crashing makes the test binary the program that crashes.
const crashing = "TIDINGS_TEST_CRASH"

// TestP11_PanicNamesHandlerInformerAndKey has a handler panic in a process that logs nothing.
func TestP11_PanicNamesHandlerInformerAndKey(t *testing.T) {
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
	const want = `panic: handler "painter" of informer colours panicked at object "default/a": no paint`
	if !strings.Contains(string(out), want) {
		t.Errorf("the output lacks %q:\n%s", want, out)
	}
}

func crash(t *testing.T) {
	i, err := tidings.NewInformer(&fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", "1", "1")}}},
		informerOptions{Name: "colours", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = i.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
		OnAdd: func(*corev1.ConfigMap, bool) { panic("no paint") },
	}, tidings.HandlerOptions{Name: "painter"})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Run(t.Context()); err != nil {
		t.Error(err)
	}
}
