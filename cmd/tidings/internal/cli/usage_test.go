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
		{"frobnicate", "the commands are completion, demo, serve, version, watch"},
		{"version --color sometimes", `--color "sometimes": choose auto, always or never`},
		{"version -o yaml", `--output "yaml": choose json`},
		{"completion", "name one shell: bash, fish, powershell, zsh"},
		{"completion tcsh", "name one shell: bash"},
		{"--frob", "unknown flag: --frob"},
		{"watch", "name a type to watch"},
		{"watch ,", "names no type"},
		{"help frobnicate", `there is no command "frobnicate": the commands are completion`},
		{"help wach", "did you mean watch?"},
		{"watch pod/web-1 services", `"services" is not TYPE/NAME, as in deployment/web, while another argument is: write all of them so`},
		{"watch pod/", `"pod/" is not TYPE/NAME, as in deployment/web: it has to be one type and one name` + "\n"},
		{"watch pod/a/b", `"pod/a/b" is not TYPE/NAME, as in deployment/web: it has to be one type and one name` + "\n"},
		{"watch pods a,b", `"a,b" is no name of an object`},
		{"watch pod/web-1 -l app=web", `the name "web-1" and a selector exclude each other`},
		{"watch pods web-1 --field-selector a=b", `the name "web-1" and a selector exclude each other`},
		{"watch pods --until Ready", `--until "Ready" is nothing to wait for`},
		{"watch pods --until jsonpath={.x", "cannot be read: unclosed action: write it as in jsonpath={.status.phase}=Running"},
		{"watch pods --timeout -1s", "--timeout -1s is negative"},
		{"watch pods -o table", `--output "table": choose name, json or yaml`},
		{"watch pods -l ???", `--selector "???"`},
		{"watch pods --field-selector a", `--field-selector "a"`},
		{"watch pods --output-watch-events", "needs -o json or -o yaml"},
		{"watch pods --initial=perhaps", `--initial "perhaps": write true or false`},
		{"watch pods --timeout 5", `--timeout "5": write a number with its unit, as in 30s or 5m`},
		{"watch pods --request-timeout x", `--request-timeout "x": write a number of seconds, or one with its unit, as in 30s or 5m`},
		{"watch pods --context ,", "--context names no context"},
		{"watch pods -n Shop_1", `--namespace "Shop_1" is no name of a namespace: `},
		{"watch pods -s http://a%zz", `--server "http://a%zz"`},
		{"demo now", `takes no arguments, only flags: "now"`},
		{"demo --pods 0", "--pods 0: choose a number from 1"},
		{"demo --pods many", `--pods "many": write a whole number`},
		{"demo --seed -1", `--seed "-1": write a whole number, 0 or above`},
		{"demo --churn lots", `--churn "lots": write a number`},
		{"demo --churn 1000000", "--churn 1000000: choose a number from 0 to 10000"},
		{"demo --churn -1", "--churn -1: choose a number from 0"},
		{"demo --churn NaN", "--churn NaN"},
		{"demo --for -1s", "--for -1s is negative"},
		{"demo --for 30", `--for "30": write a number with its unit, as in 30s or 5m`},
		{"serve here", `takes no arguments, only flags: "here"`},
		{"serve --load=", "--load names nothing"},
		{"serve --load - --load -", "--load - is there twice"},
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
		{"help", []string{"demo", "watch", "Examples:"}},
		{"help watch", []string{"--selector", "Which cluster", "tidings watch pods,deployments"}},
		{"help help", []string{"tidings help [COMMAND]"}},
		{"demo --help", []string{"--pods", "(default 2000)", "--churn", "(default 50)", "--for", "(default 30s)", "tidings demo --seed 42"}},
		{"serve --help", []string{"--load", "--listen", "tidings serve --load manifests"}},
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
	astray := filepath.Join(t.TempDir(), "astray")
	if err := os.WriteFile(astray, []byte(`{apiVersion: v1, kind: Config, current-context: staging,
contexts: [{name: staging, context: {cluster: gone}}],
clusters: [{name: here, cluster: {server: "http://127.0.0.1:9"}}]}`), 0o600); err != nil {
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
		{"broken file", []string{"--kubeconfig", broken}, []string{"the kubeconfig cannot be read: ", broken, "mend it, or name another with --kubeconfig"}},
		{"context of a cluster that is not there", []string{"--kubeconfig", astray}, []string{astray, `no cluster "gone", which the context "staging" names: it has here`, "--cluster"}},
		{"no such cluster", []string{"--kubeconfig", kubeconfig(t, nobody, "x"), "--cluster", "there"}, []string{`no cluster "there": it has here`, "--cluster"}},
		{"no such user", []string{"--kubeconfig", kubeconfig(t, nobody, "x"), "--user", "eve"}, []string{`no user "eve": it has ada`, "--user"}},
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
