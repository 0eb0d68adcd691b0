package view_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// hostile returns an object with a text wherever a server can put one.
func hostile(of view.Type, text string) *unstructured.Unstructured {
	u := object(of, "shop", "login", "1", map[string]any{
		"type": text, "message": text, "reason": text, text: text,
		"data":   map[string]any{text: text, "k": "aGlkZGVu"},
		"spec":   map[string]any{"nodeName": text, "list": []any{text, map[string]any{"name": text, "v": text}}},
		"status": map[string]any{"phase": text, "conditions": []any{map[string]any{"type": text, "status": text}}},
	})
	u.SetName(text)
	u.SetNamespace(text)
	u.SetUID(types.UID(text))
	u.SetResourceVersion(text)
	u.SetLabels(map[string]string{text: text})
	u.SetAnnotations(map[string]string{text: text})
	return u
}

// controls returns the first character of an output that a terminal may take for a command.
func controls(output string) (rune, bool) {
	for i, r := range output {
		_, size := utf8.DecodeRuneInString(output[i:])
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError && size == 1 {
			return r, true
		}
	}
	return 0, false
}

// FuzzNothingCommandsTheTerminal shows objects with any text everywhere, in every format.
func FuzzNothingCommandsTheTerminal(f *testing.F) {
	for r := range rune(0xa0) {
		if unicode.IsControl(r) {
			f.Add(string(r))
		}
	}
	for _, text := range []string{"a\u202eb", "\u2028", "\ufeff", "\ufffe", "\uffff", "\xff", "a\x1b[2J", "\x1b[31m", "\u009b2J", "x\r\x1b[K", "line\nline", "- a: b", "é\U0010ffff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		of := view.Type{Kind: widgets.Kind, Singular: text, Plural: text, Context: text}
		for _, of := range []view.Type{of, widgets, pods, secrets} {
			old, now := hostile(of, text), hostile(of, text+"x")
			for _, c := range []view.Change{
				{At: at, Of: of, Event: tidings.Added, New: now},
				{At: at, Of: of, Event: tidings.Deleted, Old: old, Tombstone: true},
				updated(of, old, now), updated(of, old, old),
			} {
				showEverywhere(t, view.Secrecy{}.Apply(c))
			}
		}
		for name, print := range map[string]func(*view.Screen){
			"print": func(s *view.Screen) { s.Print(text) }, //nolint:errcheck // a buffer takes all
			"note":  func(s *view.Screen) { s.Note(text) },
			"log":   func(s *view.Screen) { io.WriteString(s, text) }, //nolint:errcheck // as above
			"table": func(s *view.Screen) { s.Note(view.Table([]view.TypeCount{{Of: of}}, s.Palette())) },
		} {
			var out bytes.Buffer
			print(view.NewScreen(&out, &out, view.ScreenOptions{}))
			if r, ok := controls(out.String()); ok {
				t.Errorf("%s: %q in %q", name, r, out.String())
			}
		}
	})
}

// showEverywhere renders a change in every form and checks the output on a stream.
func showEverywhere(t *testing.T, c view.Change) {
	t.Helper()
	var out bytes.Buffer
	line := view.NewLines(view.LinesOptions{Types: []view.Type{c.Of}}).Render(c)
	if strings.Count(line, "\n") != 1 {
		t.Errorf("more than a line: %q", line)
	}
	show := func(name, text string) {
		out.Reset()
		if err := view.NewScreen(&out, &out, view.ScreenOptions{}).Print(text); err != nil {
			t.Fatal(err)
		}
		if r, ok := controls(text); ok || out.String() != text {
			t.Errorf("%s: %q in %q", name, r, text)
		}
	}
	show("lines", line)
	for _, format := range []string{"name", "json", "yaml"} {
		for _, events := range []bool{false, true} {
			documents := view.NewDocuments(format, events)
			for range 2 {
				text, err := documents.Render(c)
				if err != nil {
					t.Fatal(err)
				}
				show(format, text)
				if format == "json" {
					sameDocument(t, text, c, json.Unmarshal)
				}
				if format == "yaml" {
					sameDocument(t, text, c, func(data []byte, into any) error { return yaml.Unmarshal(data, into) })
				}
			}
		}
	}
}

// sameDocument reads a document again and compares a text in it with the object's.
func sameDocument(t *testing.T, text string, c view.Change, read func([]byte, any) error) {
	t.Helper()
	var got map[string]any
	if err := read([]byte(text), &got); err != nil {
		t.Errorf("%q cannot be read: %v", text, err)
		return
	}
	if of, ok := got["object"].(map[string]any); ok {
		got = of
	}
	var want string // as JSON has it, with invalid bytes replaced
	encoded, err := json.Marshal(c.Object().GetName())
	if err == nil {
		err = json.Unmarshal(encoded, &want)
	}
	if name, _, _ := unstructured.NestedString(got, "metadata", "name"); name != want || err != nil {
		t.Errorf("the name is %q and was %q: %v", name, want, err)
	}
}

// TestOnlyItsOwnColours: the codes of a Palette pass where there are colours, others never.
func TestOnlyItsOwnColours(t *testing.T) {
	p := view.Palette{Colours: true}
	for _, colours := range []bool{false, true} {
		if got := view.Clean(p.Green("a")+"\x1b[2J\x1b[8mb\n", colours); (got == p.Green("a")+"·[2J·[8mb\n") != colours || strings.Contains(got, "\x1b[8m") {
			t.Errorf("colours %t: %q", colours, got)
		}
	}
}
