package cli_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/cmd/tidings/internal/cli"
)

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // as main does
	os.Exit(m.Run())
}

// outcome is what a command line did.
type outcome struct {
	code     int
	out, err string
}

// run runs a command line as if typed on no terminal.
func run(ctx context.Context, args ...string) outcome {
	var out, err bytes.Buffer
	code := cli.Run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err})
	return outcome{code, out.String(), err.String()}
}

// waiting is what the command says while a server keeps it waiting.
var waiting = regexp.MustCompile(`(?m)^asking .* for its types …\n`)

// expect checks the code and that the one line on the error stream has the parts.
func (o outcome) expect(t *testing.T, code int, parts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d; err: %s", o.code, code, o.err)
	}
	for _, part := range parts {
		if !strings.Contains(o.err, part) {
			t.Errorf("%q is not in: %s", part, o.err)
		}
	}
	// A server that keeps the command waiting makes it say what it waits for, before
	// the one line of the error.
	said := waiting.ReplaceAllString(o.err, "")
	if lines := strings.Count(said, "\n"); code == 1 && lines != 1 {
		t.Errorf("%d lines instead of one: %s", lines, o.err)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"wach", "did you mean watch?"},
		{"frobnicate", "the commands are demo and watch"},
		{"--frob", "unknown flag: --frob"},
		{"watch", "name a type to watch"},
		{"watch ,", "names no type"},
		{"watch pod/web-1", "tidings watch pod --field-selector metadata.name=web-1"},
		{"watch pods web-1", "--field-selector metadata.name=web-1"},
		{"watch pods -o table", `--output "table": choose name, json or yaml`},
		{"watch pods -l ???", `--selector "???"`},
		{"watch pods --field-selector a", `--field-selector "a"`},
		{"watch pods --output-watch-events", "needs -o json or -o yaml"},
		{"watch pods --initial=perhaps", "perhaps"},
		{"demo now", `takes no arguments, only flags: "now"`},
		{"demo --pods 0", "--pods 0: choose a number from 1"},
		{"demo --pods many", "many"},
		{"demo --churn -1", "--churn -1: choose a number from 0"},
		{"demo --churn NaN", "--churn NaN"},
		{"demo --for -1s", "--for -1s is negative"},
		{"demo --for 30", "30"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := run(t.Context(), strings.Fields(c.args)...)
			got.expect(t, 2, c.want, "--help` for usage.\n")
			if got.out != "" {
				t.Errorf("out: %s", got.out)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	for _, c := range []struct {
		args  string
		parts []string
	}{
		{"", []string{"demo", "watch", "Examples:"}},
		{"--help", []string{"demo", "watch"}},
		{"demo --help", []string{"--pods", "(default 2000)", "--churn", "(default 50)", "--for", "(default 30s)", "tidings demo --seed 42"}},
		{"watch --help", []string{"--selector", "Which cluster", "--kubeconfig", "--context", "tidings watch pods,deployments"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := run(t.Context(), strings.Fields(c.args)...)
			if got.code != 0 || got.err != "" {
				t.Errorf("exit code %d, err %q", got.code, got.err)
			}
			for _, part := range c.parts {
				if !strings.Contains(got.out, part) {
					t.Errorf("%q is not in the help:\n%s", part, got.out)
				}
			}
		})
	}
}

// kubeconfig writes a kubeconfig with one context.
func kubeconfig(t *testing.T, server, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	content := `apiVersion: v1
kind: Config
current-context: staging
contexts: [{name: staging, context: {cluster: here, user: ada, namespace: shop}}]
clusters: [{name: here, cluster: {server: "` + server + `"}}]
users: [{name: ada, user: {token: "` + token + `"}}]
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNoCluster(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A port on which nobody listens: the discard service's, which needs root.
	const nobody = "http://127.0.0.1:9"
	for _, c := range []struct {
		name  string
		args  []string
		parts []string
	}{
		{"no file", []string{"--kubeconfig", empty + "-missing"}, []string{empty + "-missing: no such file or directory", "--kubeconfig"}},
		{"empty file", []string{"--kubeconfig", empty}, []string{"there is no cluster in " + empty, "kubectl config get-contexts", "tidings demo"}},
		{"broken file", []string{"--kubeconfig", broken}, []string{broken}},
		{"no such context", []string{"--kubeconfig", kubeconfig(t, nobody, "x"), "--context", "prod"}, []string{`no context "prod": it has staging`, "kubectl config get-contexts"}},
		{"nobody listens", []string{"--kubeconfig", kubeconfig(t, nobody, "x")}, []string{nobody, `context "staging"`, "does not answer: connection refused", "kubectl config get-contexts"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"watch", "pods", "--cache-dir", t.TempDir()}, c.args...)
			got := run(t.Context(), args...)
			got.expect(t, 1, c.parts...)
		})
	}
}
