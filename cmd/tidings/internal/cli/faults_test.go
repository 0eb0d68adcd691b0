package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// demonstrate runs a demo in virtual time, over memory, and returns what it prints.
func demonstrate(t *testing.T, o demoOptions) (out string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var printed bytes.Buffer
		d := &demonstration{o: o, screen: view.NewScreen(&printed, &printed, view.ScreenOptions{}), server: new(server)}
		if err := d.newServer(); err != nil {
			t.Fatal(err)
		}
		defer d.server.Close() //nolint:errcheck // the test is over
		if err := d.fleet.Populate(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := d.addTypes(&common{}, d.server.Config()); err != nil {
			t.Fatal(err)
		}
		err := d.run(t.Context())
		out = printed.String()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	return out
}

func TestFaultsAreNarratedWithTheirCost(t *testing.T) {
	out := demonstrate(t, demoOptions{pods: 100, churn: 40, seed: 7, faults: true, length: faultsLength})
	for _, same := range regexp.MustCompile(`no difference but the version: (\d+) → (\d+)`).FindAllStringSubmatch(out, -1) {
		if same[1] == same[2] {
			t.Errorf("an object that the backup has left as it was is printed: %s", same[0])
		}
	}
	for _, want := range []string{
		"fault: connection cut: all 8 watches break\n",
		`resumed from RV \d+ after \S+: 0 lists, [1-9]\d* objects? changed meanwhile\n`,
		"fault: 410 Gone: the server forgets the history that the watch of pods needs\n",
		`listed again after \S+: 1 list, [1-9]\d* objects? changed meanwhile\n`,
		"fault: slow handler: a second handler of pods takes 3s for one change\n",
		`[1-9]\d* changes waited for it: the other handler received [1-9]\d* meanwhile\n`,
		`fault: restored backup: the server is down, then at RV \d+ instead of \d+\n`,
		`noticed after 11s of outage: 8 lists, [1-9]\d* objects? changed meanwhile\n`,
		"fault: silent connection: the watch of configmaps brings nothing any more\n",
		`closed and resumed after (29|30)(\.\d)?s: 0 lists, [1-9]\d* objects? changed meanwhile\n`,
		`\n  faults     [5-7]\n`, "match the server",
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s is not in:\n%s", want, out)
		}
	}
}

// TestDemoMayEndDuringAFault ends demos at any moment of a fault.
func TestDemoMayEndDuringAFault(t *testing.T) {
	for _, seconds := range []int{4, 14, 20, 22, 32} {
		t.Run(fmt.Sprint(seconds), func(t *testing.T) {
			out := demonstrate(t, demoOptions{
				pods: 30, churn: 20, seed: 7, faults: true, length: time.Duration(seconds) * time.Second,
			})
			if want := fmt.Sprintf("\n  faults     %d\n", strings.Count(out, "fault: ")); !strings.Contains(out, want) {
				t.Errorf("%q is not in:\n%s", want, out)
			}
		})
	}
}
