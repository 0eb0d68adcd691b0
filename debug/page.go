package debug

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/tidings-go/tidings/internal/see/gather"
)

// page is a page and its JSON form.
type page struct {
	template string
	// figures returns the figures of the page. An error is answered with 404.
	figures func(r *http.Request, all *gather.Figures) (any, error)
}

// frame is what the layout shows, around the figures of a page.
type frame struct {
	Figures any
	// At is the time of the figures, and History the time of the oldest value in graphs.
	At, History time.Time
	Process     Process
}

// layout has the parts that all pages share.
var layout = parse(template.New("").Funcs(functions), "layout.html")

// parse adds a file of pages to a template, and the legend of its words.
func parse(t *template.Template, name string) *template.Template {
	content, err := pages.ReadFile("pages/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	source := string(content)
	if name != "layout.html" {
		source += `{{define "legend"}}` + legend(source) + "{{end}}"
	}
	return template.Must(t.New(name).Parse(labelled(source)))
}

func (h *Handler) handlerOf(p page) http.Handler {
	t := parse(template.Must(layout.Clone()), p.template)
	missing := parse(template.Must(layout.Clone()), "missing.html")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, at := h.figures(), now()
		figures, err := p.figures(r, all)
		f := frame{figures, at, h.sampler.began(), h.process(all)}
		switch {
		case err != nil && strings.Contains(r.Header.Get("Accept"), "text/html"):
			f.Figures = err.Error()
			f.write(w, missing, http.StatusNotFound)
		case err != nil:
			http.Error(w, "debug: "+err.Error(), http.StatusNotFound)
		case wantsJSON(r):
			w.Header().Set("Content-Type", "application/json")
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			encoder.Encode(figures) //nolint:errcheck // the client has gone
		default:
			f.write(w, t, http.StatusOK)
		}
	})
}

// write answers with a page.
func (f frame) write(w http.ResponseWriter, t *template.Template, status int) {
	var html bytes.Buffer
	if err := t.ExecuteTemplate(&html, "layout.html", f); err != nil {
		http.Error(w, "debug: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	html.WriteTo(w) //nolint:errcheck // the client has gone
}

// historyOf returns the history of a page, and nil for a request of JSON without the parameter
// history: it has thousands of numbers.
func (h *Handler) historyOf(r *http.Request, graphs func(h *history) []Graph, marks ...string) *History {
	if wantsJSON(r) && r.FormValue("history") == "" {
		return nil
	}
	return new(h.sampler.drawn(graphs, marks...))
}

func wantsJSON(r *http.Request) bool {
	if format := r.FormValue("format"); format != "" {
		return format == "json"
	}
	return strings.HasPrefix(r.Header.Get("Accept"), "application/json")
}
