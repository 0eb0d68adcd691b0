package cli_test

import (
	"regexp"
	"strings"
	"testing"
)

func TestDemoEndsWithCacheAndServerEqual(t *testing.T) {
	t.Parallel()
	got := run(t.Context(), "demo", "--for", "2s", "--pods", "150", "--churn", "200", "--seed", "7")
	if got.code != 0 || got.err != "" {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	for _, pattern := range []string{
		`── a made-up cluster of 150 pods at http://127\.0\.0\.1:\d+, built in \S+ from seed 7\n`,
		`── 7 informers hold its \d+ objects after \S+; now 200 changes a second for 2s, Ctrl-C ends it sooner\n`,
		`~ pod +\S+/\S+ +status\.phase Pending → Running`,
		`\n── after [2-9]\S*s\n +objects  added  updated  deleted\n`,
		`\n  pods +1[3-6]\d  `,
		`\n  lag +\S+ median, `,
		`\n  first sync \d+ objects in `,
		`\n  peak heap  \d+ MB`,
		`\n  agreement  the caches equal the server, and so does what the handlers were told: \d+ objects of 7 types\n$`,
	} {
		if !regexp.MustCompile(pattern).MatchString(got.out) {
			t.Errorf("%s is not in:\n%s", pattern, lastLines(got.out, 30))
		}
	}
	changes := regexp.MustCompile(`\n  changes +(\d+) made, (\d+) seen\n`).FindStringSubmatch(got.out)
	if changes == nil || changes[1] != changes[2] || changes[1] == "0" {
		t.Errorf("changes made and seen: %q", changes)
	}
	if strings.Contains(got.out, "\x1b") {
		t.Error("escape sequences without a terminal")
	}
}

func TestDemoWithoutChanges(t *testing.T) {
	t.Parallel()
	got := run(t.Context(), "demo", "--for", "200ms", "--pods", "1", "--churn", "0")
	if got.code != 0 || !strings.Contains(got.out, "changes    0 made, 0 seen") || !strings.Contains(got.out, "the caches equal the server") {
		t.Errorf("exit code %d: %s%s", got.code, got.err, got.out)
	}
}

func TestDemoEndsWithCtrlC(t *testing.T) {
	t.Parallel()
	s := start(t, "demo", "--for", "0", "--pods", "50", "--churn", "100")
	s.out.await(t, "now 100 changes a second until Ctrl-C")
	s.out.await(t, " ~ ")
	s.end(t)
	if !strings.Contains(s.out.String(), "the caches equal the server") {
		t.Errorf("no comparison after Ctrl-C:\n%s", lastLines(s.out.String(), 20))
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
