package controllers

import (
	"context"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidings-go/tidings/debug"
	planted "github.com/tidings-go/tidings/internal/test/secrets"
	"github.com/tidings-go/tidings/metrics"
	"github.com/tidings-go/tidings/source"
)

// printed searches what all replicas log and show for the contents of Secrets, and for tokens.
var printed planted.Output

// eyes are the pages and metrics of a replica.
type eyes struct {
	pages   *debug.Handler
	metrics http.Handler
}

func (w *world) newEyes(sources ...any) eyes {
	pages, collector := debug.New(debug.Options{}), metrics.New(metrics.Options{})
	w.must(pages.Add(sources...))
	w.must(collector.Add(sources...))
	registry := prometheus.NewRegistry()
	w.must(registry.Register(collector))
	return eyes{pages, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
}

// mostPages bounds the pages of one look.
const mostPages = 40

var links = regexp.MustCompile(`href="(/?[a-z]*\?[^"#]+)`)

// look reads the metrics and the pages, from the first one on, as HTML and as JSON.
func (w *world) look(e eyes) {
	synctest.Wait() // for the controllers of a replica that has only just been started
	if text := w.read(e.metrics, "/metrics", ""); !strings.Contains(text, "tidings_controller_") {
		w.Errorf("the metrics have no controller: %s", text)
	}
	seen := map[string]bool{"/": true}
	for next := []string{"/"}; len(next) > 0; next = next[1:] {
		w.read(e.pages, next[0], "application/json")
		for _, link := range links.FindAllStringSubmatch(w.read(e.pages, next[0], "text/html"), -1) {
			path := "/" + strings.TrimPrefix(html.UnescapeString(link[1]), "/")
			if !seen[path] && len(seen) < mostPages {
				seen[path] = true
				next = append(next, path)
			}
		}
	}
	if len(seen) < 3 {
		w.Errorf("the first page leads to %v alone", seen)
	}
}

// read returns what a handler answers. An object that a page is about may be gone meanwhile.
func (w *world) read(h http.Handler, path, accept string) string {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, http.NoBody)
	r.Host = "localhost"
	r.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	if code := answer.Code; code != http.StatusOK && code != http.StatusNotFound {
		w.Errorf("%s is answered with %d: %s", path, code, answer.Body)
	}
	printed.Write(answer.Body.Bytes()) //nolint:errcheck // it searches
	return answer.Body.String()
}

// tracer searches its spans.
type tracer struct{}

func (tracer) Start(
	ctx context.Context, name string, attrs ...slog.Attr,
) (context.Context, source.Span) {
	printed.Print(name, attrs)
	return ctx, tracer{}
}

func (tracer) End(err error, attrs ...slog.Attr) { printed.Print(fmt.Sprint(err), attrs) }
