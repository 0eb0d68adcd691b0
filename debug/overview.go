package debug

import (
	"net/http"
	"slices"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/footprint"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// Overview is the JSON form of the first page.
type Overview struct {
	At time.Time `json:"at"`
	// Problems are sorted by level and age. It is empty if there are none.
	Problems []Problem `json:"problems"`
	// Causes are the problems by their causes, sorted by level and age.
	Causes    []Cause       `json:"causes,omitempty"`
	Informers []InformerRow `json:"informers"`
	// ByMemory has the informers whose memory is known, sorted by memory, the largest first.
	ByMemory    []InformerRow       `json:"-"`
	Controllers []ControllerRow     `json:"controllers,omitempty"`
	Elections   []ElectionRow       `json:"elections,omitempty"`
	Groups      []GroupRow          `json:"groups,omitempty"`
	Skipped     map[string]string   `json:"skipped,omitempty"`
	Sharing     []source.TableStats `json:"sharing,omitempty"`
	Process     Process             `json:"process"`
	// History has the graphs of the last hour. In JSON it is there with the parameter history.
	History *History `json:"history,omitempty"`
	// Filter is a text that the names of informers and controllers contain, and Sort their order.
	Filter   string   `json:"filter,omitempty"`
	Sort     string   `json:"sort,omitempty"`
	Sortings []string `json:"-"`
	// Records reports whether there is a flight recorder.
	Records bool `json:"records,omitzero"`
}

// InformerRow is an informer of an overview.
type InformerRow struct {
	// Name is the name of its page. It differs from that of its health if several informers
	// have one name.
	Name   string          `json:"name"`
	Health health.Informer `json:"health"`
	// Rate is the number of notifications a second that its handlers have received: in the last
	// second, or in ten seconds if nobody has looked before.
	Rate float64 `json:"rate"`
	// Events, which are notifications a second, and Objects are series of the last hour.
	Events  Series `json:"-"`
	Objects Series `json:"-"`
	// Pending is the number of notifications that wait for its handlers.
	Pending int `json:"pending"`
	// Handlers are the handlers of its health, with their rates in the last second.
	Handlers []HandlerRow `json:"handlerRates,omitempty"`
	// Memory is missing for an informer that was released. Each request of an overview estimates
	// it for ten more informers.
	Memory *Memory `json:"memory,omitempty"`
}

// Memory is an estimate of the memory of the cache of an informer.
type Memory = footprint.Memory

// ControllerRow is a controller of an overview.
type ControllerRow struct {
	Health controller.Health `json:"health"`
	// Rate is the number of calls a second, over the same time.
	Rate   float64 `json:"rate"`
	Calls  Series  `json:"-"`
	Queue  Series  `json:"-"`
	Queued int     `json:"queued"`
}

// ElectionRow is a candidate for a Lease.
type ElectionRow struct {
	election.Health
	LastError string `json:"lastError,omitempty"`
	Polling   string `json:"polling,omitempty"`
}

func (h *Handler) overview(r *http.Request, figures *gather.Figures) (any, error) {
	now := time.Now()
	o := Overview{
		At: now, Informers: []InformerRow{}, Process: h.process(figures),
		Records: h.o.Recorder != nil,
	}
	o.Problems = h.problems(figures, now)
	o.Causes = causesOf(o.Problems)
	memory := h.memory(figures.Informers)
	for _, i := range figures.Informers {
		row := h.informerRow(i)
		if m, ok := memory[i.Name]; ok {
			row.Memory = &m
			o.ByMemory = append(o.ByMemory, row)
		}
		o.Informers = append(o.Informers, row)
	}
	slices.SortStableFunc(o.ByMemory, func(a, b InformerRow) int { return b.Memory.Bytes - a.Memory.Bytes })
	for _, c := range figures.Controllers {
		o.Controllers = append(o.Controllers, h.controllerRow(c.Health))
	}
	for _, e := range figures.Elections {
		o.Elections = append(o.Elections, ElectionRow{e, text(e.LastError), text(e.Polling)})
	}
	for _, g := range figures.Groups {
		row := groupRow(g.Health)
		o.Groups = append(o.Groups, row)
	}
	o.History = h.historyOf(r, overviewGraphs, "informer ", "lease ", "group ")
	o.arrange(r)
	o.Skipped, o.Sharing = figures.Skipped, figures.Sharing
	return o, nil
}

func (h *Handler) memory(informers []gather.Informer) map[string]Memory {
	views := make(map[string]inspect.View, len(informers))
	for _, i := range informers {
		if i.View != nil {
			views[i.Name] = i.View
		}
	}
	return h.estimates.Update(views)
}

func (h *Handler) informerRow(i gather.Informer) InformerRow {
	name := "informer " + i.Name
	row := InformerRow{
		Name: i.Name, Health: i.Health, Rate: h.sampler.rate(name, "delivered"),
		Events: h.sampler.series(name, "delivered"), Objects: h.sampler.series(name, "objects"),
		Handlers: h.handlerRows(i),
	}
	for _, handler := range i.Health.Handlers {
		row.Pending += handler.Pending
	}
	return row
}

func (h *Handler) controllerRow(c controller.Health) ControllerRow {
	name := "controller " + c.Name
	return ControllerRow{
		Health: c, Rate: h.sampler.rate(name, "calls"), Queued: c.Queued.Sum(),
		Calls: h.sampler.series(name, "calls"), Queue: h.sampler.series(name, "queued"),
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
