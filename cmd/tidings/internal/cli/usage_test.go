package cli_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/homedir"

	"github.com/tidings-go/tidings/cmd/tidings/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden runs the command lines of testdata/*.golden, which need no cluster, and compares their
// output.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for line := range strings.Lines(string(want)) {
			args, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ tidings")
			if !ok {
				continue
			}
			words := strings.Fields(args)
			for i, word := range words {
				words[i] = strings.Trim(word, `"`) // "" is an empty word
			}
			s := start(t, words...)
			code := <-s.code
			if code != 0 && s.out.String() != "" {
				t.Errorf("%s: it fails after output: %s", args, s.out)
			}
			out := strings.ReplaceAll(s.out.String(), homedir.HomeDir(), "$HOME")
			fmt.Fprintf(&got, "$ tidings%s\n%s%s[exit code %d]\n\n", args, out, s.err, code)
		}
		if *update {
			if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if got.String() != string(want) {
			t.Errorf("%s differs; go test -update writes it. Got\n%s", file, got.String())
		}
	}
}

// TestPlugin looks for command lines without kubectl in all help texts of the plugin.
func TestPlugin(t *testing.T) {
	bare := regexp.MustCompile(`\btidings (?:watch|demo|serve|top|shards|record|replay|completion|version|help)\b.*`)
	plugin := func(args ...string) string {
		var out, problems strings.Builder
		cli.Run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &problems, Plugin: true})
		return out.String() + problems.String()
	}
	for _, args := range []string{
		"--help", "watch --help", "demo --help", "serve --help", "top --help", "shards --help", "record --help", "replay --help", "version --help",
		"watch", "record", "watch pods --until x", "serve here", "top here", "frobnicate",
	} {
		text := plugin(strings.Fields(args)...)
		rest := strings.ReplaceAll(text, "kubectl tidings", "")
		if wrong := bare.FindAllString(rest, -1); len(wrong) > 0 || !strings.Contains(text, "kubectl tidings") {
			t.Errorf("%s: %q in\n%s", args, wrong, text)
		}
	}
}

// TestNoKubernetes asks web servers for types.
func TestNoKubernetes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code        int
		media, want string
	}{
		{200, "text/html; charset=utf-8", `(context "staging") does not seem to be Kubernetes: it answers with a web page: check its address`},
		{404, "text/html", "it answers with a web page"},
		{404, "text/plain", "does not seem to be Kubernetes: it answers with 404 (Not Found) to a request for /apis"},
		{200, "text/plain", "does not seem to be Kubernetes: it answers with a text that is not JSON"},
		{503, "text/html", "the server is currently unable to handle the request"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.media)
			w.WriteHeader(c.code)
			fmt.Fprint(w, "<html>welcome</html>") //nolint:errcheck // the client has gone
		}))
		fails(t, watchArgs(t, server.URL, "pods"), c.want)
		server.Close()
	}
}

// TestMissingKubeconfigOfTheEnvironment cannot run beside others: KUBECONFIG is the process's.
func TestMissingKubeconfigOfTheEnvironment(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("KUBECONFIG", missing)
	args := []string{"watch", "pods", "--cache-dir", t.TempDir()}
	fails(t, args, "the kubeconfig "+missing+", which KUBECONFIG names, does not exist: correct KUBECONFIG, unset it to use ")
	fails(t, append(args, "--server", "http://127.0.0.1:9"), "does not answer: connection refused")
	t.Setenv("KUBECONFIG", missing+string(filepath.ListSeparator)+kubeconfig(t, "http://127.0.0.1:9"))
	fails(t, args, "does not answer: connection refused")
}

// TestFlagsOfTheUserReachTheServer: the requests are those of the user that kubectl's flags name, also
// those of discovery.
func TestFlagsOfTheUserReachTheServer(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"Authorization": {"Bearer other"}, "Impersonate-User": {"eve"}, "Impersonate-Uid": {"7"},
		"Impersonate-Group": {"ops", "dev"}, "Impersonate-Extra-Team": {"a", "b=c"},
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range want {
			if got := r.Header.Values(name); !slices.Equal(got, values) {
				t.Errorf("%s %s has %s %q, want %q", r.Method, r.URL.Path, name, got, values)
			}
		}
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	fails(t, watchArgs(t, server.URL, "pods", "--insecure-skip-tls-verify", "--token", "other", "--as", "eve", "--as-uid", "7",
		"--as-group", "ops", "--as-group", "dev", "--as-user-extra", "team=a", "--as-user-extra", "team=b=c"), "eve")
}

func TestNoCluster(t *testing.T) {
	file := func(text string) string { return textFile(t, t.TempDir(), "config", text) }
	empty, broken := file("apiVersion: v1\nkind: Config\n"), file("{{{")
	astray := file(`{apiVersion: v1, kind: Config, current-context: staging,
contexts: [{name: staging, context: {cluster: gone}}],
clusters: [{name: here, cluster: {server: "http://127.0.0.1:9"}}]}`)
	const nobody = "http://127.0.0.1:9" // the discard service's port, which only root may open
	there := kubeconfig(t, nobody)
	for _, c := range []struct {
		flags string
		parts []string
	}{
		{empty + "-missing", []string{empty + "-missing: no such file or directory", "--kubeconfig"}},
		{empty, []string{"there is no cluster in " + empty, "kubectl config get-contexts", "tidings demo"}},
		{broken, []string{"the kubeconfig cannot be read: ", broken, "correct it, or name another with --kubeconfig"}},
		{astray, []string{astray, `no cluster "gone", which the context "staging" names: it has here`, "--cluster"}},
		{there + " --cluster east", []string{`no cluster "east": it has staging`, "--cluster"}},
		{there + " --user eve", []string{`no user "eve": it has ada`, "--user"}},
		{there + " --context prod", []string{`no context "prod": it has staging`, "kubectl config get-contexts"}},
		{there, []string{nobody, `context "staging"`, "does not answer: connection refused", "kubectl config get-contexts"}},
	} {
		args := append([]string{"watch", "pods", "--cache-dir", t.TempDir(), "--kubeconfig"}, strings.Fields(c.flags)...)
		fails(t, args, c.parts...)
	}
}
