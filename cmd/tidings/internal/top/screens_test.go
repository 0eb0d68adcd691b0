package top

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/debug"
)

var update = flag.Bool("update", false, "write the golden files")

// files answers requests for pages with the files of testdata.
func files(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "overview"
	}
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	w.Header().Set(debug.FormHeader, debug.FormVersion)
	switch asked := r.FormValue("name") + r.FormValue("key"); {
	case err != nil || asked == "gone":
		http.Error(w, "debug: there is no "+name+" gone", http.StatusNotFound)
	default:
		w.Write(text) //nolint:errcheck // it is memory
	}
}

// handled is a transport that calls a handler.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer.Result(), nil
}

func clientOf(h http.Handler) *Client {
	c := NewClient("http://localhost:8085/", func(context.Context) (*url.URL, error) {
		return url.Parse("http://localhost:8085/")
	})
	c.http.Transport = handled{h}
	return c
}

// shown returns a model of the files on a screen of a size, after keys. An element of keys is the
// name of a key, or a text that is typed.
func shown(t *testing.T, width, height int, keys ...string) model {
	t.Helper()
	m := model{ctx: t.Context(), client: clientOf(http.HandlerFunc(files)), interval: time.Hour}
	m = sent(m, tea.WindowSizeMsg{Width: width, Height: height})
	return pressed(sent(m, m.refresh()), keys...)
}

// sent returns a model after a message and those that its commands return.
func sent(m model, msg tea.Msg) model {
	next, command := m.Update(msg)
	m = next.(model)
	if _, timed := msg.(refreshed); timed || command == nil {
		return m // the command waits
	}
	if answer := command(); answer != nil {
		m = sent(m, answer)
	}
	return m
}

var named = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "down": tea.KeyDown, "up": tea.KeyUp,
	"end": tea.KeyEnd, "home": tea.KeyHome, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "backspace": tea.KeyBackspace,
}

func pressed(m model, keys ...string) model {
	for _, key := range keys {
		if code, ok := named[key]; ok {
			m = sent(m, tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range key {
			m = sent(m, tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return m
}

// TestScreens compares screens after keys with the golden files, at 60, 80 and 160 columns.
func TestScreens(t *testing.T) {
	for name, keys := range map[string][]string{
		"problems":           nil,
		"keys":               {"?"},
		"informers":          {"2"},
		"informers-memory":   {"2", "M"},
		"informers-filter":   {"2", "/", "APPS", "enter"},
		"informers-typing":   {"2", "/", "apx", "backspace", "p"},
		"handlers":           {"3"},
		"controllers":        {"4"},
		"leases":             {"5"},
		"shards":             {"6"},
		"group":              {"6", "enter"},
		"group-end":          {"6", "enter", "end"},
		"informer":           {"3", "enter"},
		"controller":         {"4", "enter"},
		"controller-end":     {"4", "enter", "end"},
		"controller-filter":  {"4", "enter", "/", "settings", "enter"},
		"controller-missing": {"g", "gone", "enter"},
		"key":                {"g", "shop/settings", "enter"},
		"key-end":            {"g", "shop/settings", "enter", "end"},
	} {
		for _, width := range []int{60, 80, 160} {
			file := filepath.Join("testdata", fmt.Sprintf("%s-%d.golden", name, width))
			got := shown(t, width, 24, keys...).draw() + "\n"
			lines := strings.Split(got, "\n")
			if len(lines) != 25 {
				t.Errorf("%s has %d lines, want 24", file, len(lines)-1)
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > width || view.Printable(line) != line {
					t.Errorf("%s has a line that is too wide, or with a control character: %q", file, line)
				}
			}
			want, err := os.ReadFile(file)
			if *update {
				err = os.WriteFile(file, []byte(got), 0o600)
				want = []byte(got)
			}
			if err != nil || got != string(want) {
				t.Errorf("%s differs (%v); go test -update writes it. Got\n%s", file, err, got)
			}
		}
	}
}

// TestQuestions asks each question of an operator with at most three keys; a typed key of an object
// counts as one.
func TestQuestions(t *testing.T) {
	for _, c := range []struct {
		question string
		keys     []string
		answer   string
	}{
		{"which informer is behind, and by how much", nil, "4m30s  deployments.v1.apps"},
		{"which handler is slow", []string{"3"}, "mailer             configmaps.v1  Behind     12s       42  1.8s"},
		{"which key is stuck, and since when", nil, "30s  controller labels                shop/settings is held back"},
		{"why was this key reconciled", []string{"4", "enter", "pgdown"}, "because: Updated configmaps.v1 shop/settings by kubectl-edit (2 times)"},
		{"why was this key reconciled", []string{"g", "shop/settings", "enter"}, "because: Updated configmaps.v1 shop/settings by kubectl-edit (2 times)"},
		{"which type is forbidden", nil, "2m0s  pods.v1                          is Forbidden"},
		{"what takes the memory", []string{"2", "M"}, "MEMORY\n▶configmaps.v1        Watching"},
		{"who fights with whom", nil, "1m0s  controller labels                metadata.labels.app of shop/settings is changed in turn by the calls of shop/settings (labels) and by others (argocd)"},
		{"who fights with whom", []string{"4", "enter"}, "metadata.labels.app of shop/settings in configmaps.v1: written by the calls of shop/settings (labels) and others (argocd); 7 times for 1m0s"},
		{"how late are the caches", []string{"4", "enter", "end"}, "from a write until configmaps.v1 held it: 10ms in the mean"},
		{"who changed this field last", []string{"g", "shop/settings", "enter"}, "kubectl-edit wrote last 32s ago (Update):\n     .data.colour  .data.size"},
	} {
		if screen := shown(t, 160, 24, c.keys...).draw(); len(c.keys) > 3 || !strings.Contains(screen, c.answer) {
			t.Errorf("%s: after %q there is no %q in\n%s", c.question, c.keys, c.answer, screen)
		}
	}
}

// TestColumnsHaveKeys asks that the first letters of the columns of a screen differ.
func TestColumnsHaveKeys(t *testing.T) {
	for _, screen := range (figures{}).screens() {
		seen := map[byte]string{}
		for _, c := range screen.columns {
			if other := seen[c.name[0]]; other != "" {
				t.Errorf("%s: the key of %s is that of %s", screen.name, c.name, other)
			}
			seen[c.name[0]] = c.name
		}
	}
}

// TestSorting sorts by numbers and texts, in both directions.
func TestSorting(t *testing.T) {
	first := func(keys ...string) string {
		m := shown(t, 160, 24, keys...)
		_, rows := m.table()
		return rows[0].id
	}
	for keys, want := range map[string]string{
		"2": "configmaps.v1", "2O": "deployments.v1.apps", "2OO": "pods.v1", "2N": "configmaps.v1", "2NN": "secrets.v1",
		"2L": "deployments.v1.apps", "2NX": "configmaps.v1",
	} {
		// Without a choice, informers with problems come first: configmaps.v1 has one of a handler.
		if keys == "2" {
			want = "pods.v1"
		}
		if got := first(keys); got != want {
			t.Errorf("after %q the first row is %s, want %s", keys, got, want)
		}
	}
}

// TestCursorFollowsItsRow sorts, and refreshes, after the cursor was moved.
func TestCursorFollowsItsRow(t *testing.T) {
	m := shown(t, 80, 24, "2", "N", "down")
	if got := m.link(); got != "informer?name=deployments.v1.apps" {
		t.Fatalf("the cursor is at %s", got)
	}
	m = pressed(m, "O")
	if got := m.link(); got != "informer?name=deployments.v1.apps" {
		t.Errorf("after sorting, the cursor is at %s", got)
	}
	if got := pressed(m, "/", "zzz", "enter", "down", "enter").draw(); !strings.Contains(got, "No row contains the filter.") {
		t.Errorf("without rows:\n%s", got)
	}
	if got := pressed(m, "/", "zzz", "enter", "esc").link(); got != "informer?name=deployments.v1.apps" {
		t.Errorf("after the filter was left out, the cursor is at %q", got)
	}
	for keys, want := range map[string]string{"end": "pods.v1", "pgdown": "pods.v1", "home": "deployments.v1.apps", "pgup": "deployments.v1.apps"} {
		if got := pressed(m, keys).link(); got != "informer?name="+want {
			t.Errorf("after %s the cursor is at %s, want %s", keys, got, want)
		}
	}
}

// TestDetailsFollowTheirLine has a line with a link move down by a refresh.
func TestDetailsFollowTheirLine(t *testing.T) {
	m := shown(t, 80, 24, "4", "enter", "down", "down", "down", "down", "down", "down", "down", "down", "down")
	if got := m.link(); got != keyLink("shop/settings") {
		t.Fatalf("the cursor is at a line with the link %q:\n%s", got, m.draw())
	}
	page := *m.opened[0].page.(*debug.ControllerFigures)
	page.Problems = append(page.Problems, page.Problems...)
	m = sent(m, answered{link: m.opened[0].link, page: &page})
	if got := m.link(); got != keyLink("shop/settings") {
		t.Errorf("the cursor is at a line with the link %q", got)
	}
	if got := pressed(m, "enter", "esc").link(); got != keyLink("shop/settings") {
		t.Errorf("after going on and back, the cursor is at a line with the link %q", got)
	}
}

// TestFailuresAreShown has a refresh fail, and the next one succeed.
func TestFailuresAreShown(t *testing.T) {
	m := shown(t, 80, 24, "2")
	m = sent(m, refreshed{err: errors.New("it does\nnot answer")})
	m.answered = time.Now().Add(-8 * time.Second)
	for _, want := range []string{"No answer for 8s: figures of 12:00:00 UTC. it does not answer", "configmaps.v1"} {
		if screen := m.draw(); !strings.Contains(screen, want) {
			t.Errorf("no %q after a failure:\n%s", want, screen)
		}
	}
	m.palette.Colours = true
	if screen := m.draw(); !strings.Contains(screen, "\x1b[2mpods.v1") {
		t.Errorf("old figures are not grey: %q", screen)
	}
	m.palette.Colours = false
	if screen := sent(m, ticked{}).draw(); strings.Contains(screen, "not answer") {
		t.Errorf("after the next refresh:\n%s", screen)
	}
}

// TestNoProblemsAreNotSaidWithoutAnAnswer, after a failure and while a request takes long.
func TestNoProblemsAreNotSaidWithoutAnAnswer(t *testing.T) {
	m := model{width: 80, height: 24, client: clientOf(http.NotFoundHandler()), answered: time.Now()}
	if screen := m.draw(); !strings.Contains(screen, "No problems.") {
		t.Errorf("at rest:\n%s", screen)
	}
	late, failed := m, m
	late.answered, failed.failure = time.Now().Add(-time.Minute), errors.New("refused")
	for _, m := range []model{late, failed} {
		if screen := m.draw(); strings.Contains(screen, "No problems") || !strings.Contains(screen, "Not known") {
			t.Errorf("without an answer:\n%s", screen)
		}
	}
}

// TestKeysAreInTheDocumentation, with the same words, and a screen.
func TestKeysAreInTheDocumentation(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "command", "top.md"))
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.ReadFile(filepath.Join("testdata", "informer-80.golden"))
	if err != nil || !strings.Contains(string(docs), string(screen)) {
		t.Errorf("the screen in the page differs from informer-80.golden (%v)", err)
	}
	for _, b := range bindings() {
		if row := fmt.Sprintf("| `%s` | %s |", b.shown, b.what); !strings.Contains(string(docs), row) {
			t.Errorf("no row %s", row)
		}
	}
	if m := pressed(shown(t, 80, 24, "?"), "2"); m.isHelp || m.screen != problemsScreen {
		t.Error("a key in the help does more than to close it")
	}
}

// TestNamesKeepTheSpace: a narrow screen leaves other columns out, and says so.
func TestNamesKeepTheSpace(t *testing.T) {
	screen := shown(t, 60, 24, "3").draw()
	for _, want := range []string{"controller labels  configmaps.v1", "No room for RATE/S, MEAN"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
}

// TestColours draws with colours and without.
func TestColours(t *testing.T) {
	m := shown(t, 80, 24)
	m.palette.Colours = true
	if coloured := m.draw(); !strings.Contains(coloured, "\x1b[31m") || ansi.Strip(coloured) != shown(t, 80, 24).draw() {
		t.Errorf("with colours:\n%s", coloured)
	}
}

// TestProblemsOfOneCauseAreOneRow has an outage, and a key that waits.
func TestProblemsOfOneCauseAreOneRow(t *testing.T) {
	f := figures{debug.Overview{At: time.Now()}}
	for _, of := range []string{"a", "b"} {
		f.Problems = append(f.Problems, debug.Problem{Of: of, Level: debug.LevelError, What: "is Backoff"})
	}
	wait := debug.Problem{Of: "controller c", Level: debug.LevelWaiting, What: "has a key that waits"}
	f.Causes = []debug.Cause{
		{What: "The API server does not answer", Level: debug.LevelError, Informers: 2, Problems: f.Problems},
		{Level: debug.LevelWaiting, Problems: []debug.Problem{wait}},
	}
	f.Problems = append(f.Problems, wait)
	rows := f.problems().rows
	if len(rows) != 2 || rows[0].cells[1].text != "2 informers" || !rows[0].bad ||
		rows[0].cells[2].text != "The API server does not answer" || rows[1].cells[1].text != "controller c" || rows[1].bad {
		t.Errorf("the rows are %+v", rows)
	}
}

// TestWaitsAreShown: why keys wait, and until when, in the details of a controller and of a key.
func TestWaitsAreShown(t *testing.T) {
	now := time.Now()
	w := controller.Wait{
		Key: "a/b", State: controller.WaitBackingOff, Because: "its last call has failed", Since: now.Add(-time.Minute),
		Attempt: 7, LastError: "no quota", Next: now.Add(time.Hour),
	}
	capped := &debug.ControllerFigures{ControllerRow: debug.ControllerRow{Health: controller.Health{BackingOff: 1200}}, Waits: []controller.Wait{w}}
	for page, want := range map[any]string{
		capped: "Waiting after an error: 1,200, the first 1",
		&debug.ControllerFigures{Waits: []controller.Wait{w}}: "a/b for 1m0s: its last call has failed, attempt 7, next in 1h",
		&debug.KeyFigures{Waits: []debug.KeyWait{{Controller: "c", Wait: w}}}: "controller c for 1m0s: its last call has failed, " +
			"attempt 7, next in 1h",
	} {
		var got strings.Builder
		for _, l := range detailsOf(page, now, 200) {
			got.WriteString(l.text + "\n")
		}
		if !strings.Contains(got.String(), want) || !strings.Contains(got.String(), "error: no quota") {
			t.Errorf("no %q in\n%s", want, got.String())
		}
	}
}
