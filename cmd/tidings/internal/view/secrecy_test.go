package view_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/source"
)

var secrets = view.Type{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Singular: "secret", Plural: "secrets"}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func encoded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func secret(version, password string, annotations map[string]any) *unstructured.Unstructured {
	u := object(secrets, "shop", "login", version, map[string]any{
		"type": "Opaque",
		"data": map[string]any{"password": encoded(password), "user": encoded("ada")},
	})
	if annotations != nil {
		u.Object["metadata"].(map[string]any)["annotations"] = annotations
	}
	return u
}

// render shows a change in every format.
func render(t *testing.T, c view.Change) map[string]string {
	t.Helper()
	rendered := map[string]string{"lines": view.NewLines(view.LinesOptions{}).Render(c)}
	for _, format := range []string{"name", "json", "yaml"} {
		for _, events := range []bool{false, true} {
			documents := view.NewDocuments(format, events)
			text, err := documents.Render(c)
			if err != nil {
				t.Fatal(err)
			}
			rendered[format] += text
		}
	}
	return rendered
}

// TestSecretsAreHiddenEverywhere puts the data of a Secret, of both states and malformed, into every
// other place that could be printed.
func TestSecretsAreHiddenEverywhere(t *testing.T) {
	const before, after, pin = "hunter2-hunter2", "correct-horse-battery", "417"
	leaks := []string{before, after, encoded(before), encoded(after), "H4sI", pin}
	repeating := func(version, password string, data any) *unstructured.Unstructured {
		u := object(secrets, "shop", "login", version, map[string]any{
			"type": "Opaque", "data": data, "other": []any{password},
		})
		metadata := u.Object["metadata"].(map[string]any)
		metadata["labels"] = map[string]any{"team": before, "part": encoded(after)}
		metadata["annotations"] = map[string]any{
			lastApplied: `{"data":{"password":"` + encoded(password) + `"}}`, "zip": "H4sI" + after,
		}
		metadata["finalizers"] = []any{password}
		metadata["ownerReferences"] = []any{map[string]any{"name": password}}
		return u
	}
	typed := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "login", ResourceVersion: "3",
			Annotations: map[string]string{lastApplied: after},
		},
		Data: map[string][]byte{"password": []byte(after)}, StringData: map[string]string{"token": before},
	}
	now := repeating("2", after, map[string]any{"password": encoded(after)})
	for kind, data := range map[string]any{
		"map": map[string]any{"password": encoded(before), "pin": encoded(pin)}, "text": before,
		"list": []any{before, pin}, "deeper map": map[string]any{"a": map[string]any{"b": pin}},
	} {
		old := repeating("1", before, data)
		for name, change := range map[string]view.Change{
			"added":   {At: at, Of: secrets, Event: tidings.Added, New: old},
			"updated": updated(secrets, old, now),
			"back":    updated(secrets, now, old),
			"emptied": updated(secrets, old, object(secrets, "shop", "login", "3", nil)),
			"typed":   updated(secrets, old, typed),
			"deleted": {At: at, Of: secrets, Event: tidings.Deleted, Old: old},
		} {
			for format, text := range render(t, view.Secrecy{}.Apply(change)) {
				for _, leak := range leaks {
					if strings.Contains(text, leak) {
						t.Errorf("%s, %s as %s shows %q:\n%s", kind, name, format, leak, text)
					}
				}
			}
		}
	}
	if now.Object["data"].(map[string]any)["password"] != encoded(after) {
		t.Error("the cached object was changed")
	}
	shown := render(t, view.Secrecy{Show: true}.Apply(updated(secrets, typed, now)))
	if !strings.Contains(shown["yaml"], encoded(after)) {
		t.Errorf("with --show-secrets the data is not shown:\n%s", shown["yaml"])
	}
}

func TestHiddenChangesAreStillSeen(t *testing.T) {
	lines := view.NewLines(view.LinesOptions{})
	for _, c := range []struct {
		name     string
		old, now *unstructured.Unstructured
		want     string
	}{
		{"another length", secret("1", "short", nil), secret("2", "much longer", nil), "data.password <hidden, 5 bytes> → <hidden, 11 bytes"},
		{"the same length", secret("1", "aaaaa", nil), secret("2", "bbbbb", nil), "data.password <hidden, 5 bytes> → <hidden, 5 bytes, changed>"},
		{"an annotation", secret("1", "aaaaa", map[string]any{lastApplied: "{a}"}), secret("2", "aaaaa", map[string]any{lastApplied: "{b}"}), "<hidden, 3 bytes> → <hidden, 3 bytes, changed>"},
	} {
		got := lines.Render(view.Secrecy{}.Apply(updated(secrets, c.old, c.now)))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q in it", c.name, got, c.want)
		}
	}
}

func TestOtherTypesAreNotTouched(t *testing.T) {
	change := updated(pods, runningPod("a"), runningPod("a"))
	if got := (view.Secrecy{}).Apply(change); got != change {
		t.Error("a change of a pod was touched")
	}
}

func TestErrorsDoNotQuoteSecrets(t *testing.T) {
	quoting := func(resource string, phase source.Phase) error {
		return &source.Error{Op: "watch", Resource: resource, Phase: phase, Err: errors.New(`malformed: "hunter2"`)}
	}
	for _, phase := range []source.Phase{source.Decoding, source.Streaming} {
		if err := (view.Secrecy{}).Error(quoting("secrets.v1", phase)); strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", phase, err)
		}
	}
	if err := (view.Secrecy{}).Error(quoting("configmaps.v1", source.Decoding)); !strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an error about config maps lost its cause: %v", err)
	}
	if err := (view.Secrecy{Show: true}).Error(quoting("secrets.v1", source.Decoding)); !strings.Contains(err.Error(), "hunter2") {
		t.Errorf("with --show-secrets the cause is missing: %v", err)
	}
}
