package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/debug"
)

// terminal is a fake terminal. It keeps the output, and the program reads keys from it.
type terminal struct {
	*testing.T
	keys *io.PipeWriter

	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// press presses keys, and waits until the program has handled them and drawn its frame.
func (s *terminal) press(keys string) {
	s.Helper()
	for _, key := range keys {
		if _, err := io.WriteString(s.keys, string(key)); err != nil {
			s.Fatal(err)
		}
		synctest.Wait()
	}
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

// shows checks that a text was drawn.
func (s *terminal) shows(text string) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(s.text.String(), text) {
		s.Errorf("the terminal has no %q: %q", text, s.text.String())
	}
}

// pagesOf runs a program with an informer of two ConfigMaps and a forbidden one of Pods, and
// returns its pages.
func pagesOf(t *testing.T, ctx context.Context) (pages *debug.Handler, stop func()) {
	t.Helper()
	server := apisim.Options{}.Start(t)
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	fatal(err)
	for i := range 2 {
		_, err := server.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("c", i)}})
		fatal(err)
	}
	server.Inject(apisim.Match{Resource: "pods"}, apisim.Refuse(http.StatusForbidden, 0))
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{Logger: slog.New(slog.DiscardHandler)})
	fatal(err)
	_, err = tidings.For[*corev1.Pod](factory, tidings.Selection{})
	fatal(err)
	configMaps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	fatal(err)
	_, err = configMaps.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
		OnAdd: func(*corev1.ConfigMap, bool) {},
	}, tidings.HandlerOptions{Name: "mailer"})
	fatal(err)
	fatal(factory.Start(ctx))
	pages = debug.New(debug.Options{})
	fatal(pages.Add(factory))
	return pages, func() {
		pages.Close()
		fatal(factory.Shutdown(ctx))
	}
}

// TestRun drives the program with keys.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages, stop := pagesOf(t, t.Context())
		defer stop()
		time.Sleep(5 * time.Second)
		in, keys := io.Pipe()
		screen := &terminal{T: t, keys: keys}
		type end struct {
			last model
			err  error
		}
		ended := make(chan end, 1)
		go func() {
			last, err := run(t.Context(), clientOf(pages), Options{
				In: in, Out: screen, Interval: time.Second, width: 100, height: 30,
			})
			ended <- end{last, err}
		}()
		screen.press("1")
		screen.shows("▶[1] problems 1")
		screen.shows("is Forbidden")
		screen.press("3\r") // the handlers, and the informer of the first one
		screen.shows("Handlers")
		time.Sleep(3 * time.Second) // three refreshes
		screen.press("/c1\r")
		screen.press("ga/c1\r")
		screen.shows("Key a/c1")
		screen.press("q")
		keys.Close() //nolint:errcheck // it has ended
		got := <-ended
		if got.err != nil || got.last.failure != nil {
			t.Fatalf("%v, %v", got.err, got.last.failure)
		}
		if last := got.last.draw(); !strings.Contains(last, "Cached by configmaps.v1") || len(got.last.opened) != 2 {
			t.Errorf("the last screen:\n%s", last)
		}
		if found := got.last.opened[0].page.(*debug.InformerFigures); found.Found != 1 || found.Search != "c1" {
			t.Errorf("the filter has found %d keys for %q", found.Found, found.Search)
		}
		if at := got.last.figures.At; time.Since(at) > 2*time.Second {
			t.Errorf("the figures are those of %v ago", time.Since(at))
		}
	})
}

// TestRunEndsWithItsContext ends the context, as Ctrl-C in another terminal or a signal does.
func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, keys := io.Pipe()
		defer keys.Close() //nolint:errcheck // it has ended
		ended := make(chan error, 1)
		go func() {
			ended <- Run(ctx, clientOf(http.HandlerFunc(files)), Options{
				In: in, Out: &terminal{T: t}, Interval: time.Second, width: 80, height: 24,
			})
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestClientErrors: the errors name the process, the problem and the remedy.
func TestClientErrors(t *testing.T) {
	answer := func(version string, code int, body string) *Client {
		return clientOf(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if version != "" {
				w.Header().Set(debug.FormHeader, version)
			}
			w.WriteHeader(code)
			io.WriteString(w, body) //nolint:errcheck // it is memory
		}))
	}
	for _, c := range []struct {
		client *Client
		want   string
	}{
		{answer("", 200, "<html>"), "http://localhost:8085/ is not a page of Tidings' package debug: it answers with 200 OK: name the address of the first page"},
		{answer("2", 200, "{}"), `has its figures in version "2", and this command reads version 1: use the command of the version of Tidings that the program is built with`},
		{answer(debug.FormVersion, 403, "debug: requests for the host \"x\" are not answered\n"), `http://localhost:8085/: debug: requests for the host "x" are not answered`},
		{answer(debug.FormVersion, 200, "{"), "http://localhost:8085/ has sent figures that cannot be read: unexpected end of JSON input"},
	} {
		_, err := c.client.Tables(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", err, c.want)
		}
		if err := Run(t.Context(), c.client, Options{Out: io.Discard, Interval: time.Second}); err == nil {
			t.Error("Run returns no error")
		}
	}
	if _, err := answer(debug.FormVersion, 200, "{").JSON(t.Context()); err == nil || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("a text that is no JSON: %v", err)
	}
}

// TestOnce prints the figures for scripts.
func TestOnce(t *testing.T) {
	client := clientOf(http.HandlerFunc(files))
	text, err := client.Tables(t.Context())
	for _, want := range []string{
		"PROBLEMS\nSINCE  OF ", "\nINFORMERS\nNAME ", " 4m30s   20,000\n", " 1.2 MiB\n", "\nmailer             configmaps.v1  Behind     12s       42  1.8s     0.4  shop/settings   3s\n",
		"\nlabels    Running       4    2.5s        1          1        1  9,876      12        14.2  25ms        2\n", "\nops/labels  Leading",
	} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("no %q (%v) in\n%s", want, err, text)
		}
	}
	form, err := client.JSON(t.Context())
	if err != nil || !strings.HasPrefix(form, "{\n") || !strings.Contains(form, `"heapBytes": 93323264`) {
		t.Errorf("%v:\n%s", err, form)
	}
}
