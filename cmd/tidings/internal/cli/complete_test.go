package cli_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completed returns what a shell is offered after some words, the last of which is being
// typed.
func completed(t *testing.T, args ...string) []string {
	t.Helper()
	got := run(t.Context(), append([]string{"__complete"}, args...)...)
	if got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	var words []string
	for line := range strings.Lines(got.out) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); word != "" && !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	return words
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	_, url := simulated(t, pod("web-1", corev1.ConditionTrue), pod("web-2", corev1.ConditionTrue), pod("api-1", corev1.ConditionTrue),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	at := []string{"watch", "--kubeconfig", kubeconfig(t, url, "x"), "--cache-dir", t.TempDir()}
	for _, c := range []struct {
		typed string
		want  string
	}{
		{"wa", "watch"},
		{"completion ", "bash fish powershell zsh"},
		{"--color ", "auto always never"},
		{"AT depl", "deployments"},
		{"AT pods,depl", "pods,deployments"},
		{"AT replicas", "replicasets"},
		{"AT deployments.a", "deployments.apps"},
		{"AT events", "events events.events.k8s.io"},
		{"AT xyz", ""},
		{"AT pods ", "api-1 web-1 web-2"},
		{"AT pods w", "web-1 web-2"},
		{"AT pods web-1 w", "web-2"},
		{"AT pod/w", "pod/web-1 pod/web-2"},
		{"AT pod/web-1,po/a", "pod/web-1,po/api-1"},
		{"AT pod/web-1 node", "nodes/"},
		{"AT no ", "node-1"},
		{"AT -A po w", "web-1 web-2"},
		{"AT -n default po w", ""},
		{"AT nonsense ", ""},
		{"AT -n s", "shop"},
		{"AT --context s", "staging"},
		{"AT --context staging,s", "staging,staging"},
		{"AT --user ", "ada"},
		{"AT --cluster ", "here"},
		{"AT pods -o ", "name json yaml"},
		{"AT pods --until ", "condition= jsonpath= create delete"},
	} {
		words := strings.Split(c.typed, " ")
		if words[0] == "AT" {
			words = slices.Concat(at, words[1:])
		}
		if got := strings.Join(completed(t, words...), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.typed, got, c.want)
		}
	}
}

func TestCompletionWithoutAClusterOffersNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"pods", ""}, {"po"}, {"-n", ""}, {"pod/"}} {
		at := []string{"watch", "--kubeconfig", kubeconfig(t, "http://127.0.0.1:9", "x"), "--cache-dir", t.TempDir()}
		if got := completed(t, append(at, args...)...); len(got) != 0 {
			t.Errorf("%q: %q", args, got)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for shell, part := range map[string]string{"bash": "complete -o default", "zsh": "#compdef tidings", "fish": "complete -c tidings", "powershell": "Register-ArgumentCompleter"} {
		got := run(t.Context(), "completion", shell)
		got.expect(t, 0)
		if !strings.Contains(got.out, part) {
			t.Errorf("%s: %q is not in the script", shell, part)
		}
	}
}
