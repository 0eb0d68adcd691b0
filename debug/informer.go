package debug

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/footprint"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// listedKeys bounds the keys of a page.
const listedKeys = 100

// InformerFigures is the JSON form of the page of an informer.
type InformerFigures struct {
	InformerRow
	Problems []Problem `json:"problems,omitempty"`
	// Watches has its lists and watches by namespace; one with the name "" if it holds all
	// namespaces.
	Watches []NamedWatch `json:"-"`
	// Indexes is missing for an informer that was released.
	Indexes []inspect.Index `json:"indexes,omitempty"`
	// Keys are up to 100 keys that contain Search, from the number of the parameter from on. Found is
	// the number of all.
	Search string   `json:"search,omitempty"`
	Keys   []string `json:"keys,omitempty"`
	Found  int      `json:"found,omitempty"`
	Pager  Pager    `json:"-"`
	// Commands are texts to copy.
	Commands []Command `json:"commands,omitempty"`
	// History has the graphs of the last hour. In JSON it is there with the parameter history.
	History *History `json:"history,omitempty"`
	// HasKeys reports whether the page can show keys.
	HasKeys bool `json:"-"`
}

// NamedWatch is the list and watch of a namespace.
type NamedWatch struct {
	Namespace string
	health.Watch
}

// HandlerRow is a handler of an informer.
type HandlerRow struct {
	health.Handler
	Rate float64 `json:"rate"`
	// Behind is the age of the oldest notification that waits for it, in whole seconds.
	Behind metav1.Duration `json:"behind,omitzero"`
	// Delivered and Backlog are series of the last hour, on the page of its informer.
	Delivered Series `json:"-"`
	Backlog   Series `json:"-"`
}

func (h *Handler) informerPage(r *http.Request, all *gather.Figures) (any, error) {
	i, err := informerOf(all, r.FormValue("name"))
	if err != nil {
		return nil, err
	}
	f := InformerFigures{InformerRow: h.informerRow(i), Search: r.FormValue("search")}
	for n, row := range f.Handlers {
		f.Handlers[n].Delivered = h.sampler.series("informer "+i.Name, counterPrefix+row.Name)
		f.Handlers[n].Backlog = h.sampler.series("informer "+i.Name, "pending of "+row.Name)
	}
	f.History = h.historyOf(r, informerGraphs(i.Name), "informer "+i.Name)
	f.Problems = sorted(h.informerProblems(i, now()))
	if len(i.Health.Namespaces) == 0 {
		f.Watches = []NamedWatch{{"", i.Health.Watch}}
	}
	f.Commands = informerCommands(i)
	for _, namespace := range sortedKeys(i.Health.Namespaces) {
		f.Watches = append(f.Watches, NamedWatch{namespace, i.Health.Namespaces[namespace]})
	}
	if i.View != nil {
		memory := footprint.Of(i.View)
		f.HasKeys, f.Indexes, f.Memory = true, i.View.Usage().Indexes, &memory
		f.search(r, i.View)
	}
	return f, nil
}

func (h *Handler) handlerRows(i gather.Informer) (rows []HandlerRow) {
	name := "informer " + i.Name
	for _, handler := range i.Health.Handlers {
		row := HandlerRow{Handler: handler, Rate: h.sampler.rate(name, counterPrefix+handler.Name)}
		row.Behind.Duration = h.sampler.behind(i.Name, handler)
		rows = append(rows, row)
	}
	return rows
}

// search finds the keys that contain a text, and keeps those of a page.
func (f *InformerFigures) search(r *http.Request, view inspect.View) {
	var all []string
	for key := range view.Keys() {
		if strings.Contains(key, f.Search) {
			all = append(all, key)
		}
	}
	f.Found, f.Pager = len(all), pagerOf(r, len(all), listedKeys)
	f.Keys = all[f.Pager.From:f.Pager.To]
}
