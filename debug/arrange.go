package debug

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// sortings are the orders of the rows of the first page, by the parameter sort. Without it they are
// in the order in which they were added.
var sortings = []string{"", "name", "objects", "waiting", "memory", "queued", "oldest"}

// arrange keeps the rows whose names contain the filter, and sorts them: by name, or the largest
// first.
func (o *Overview) arrange(r *http.Request) {
	o.Filter, o.Sort, o.Sortings = r.FormValue("filter"), r.FormValue("sort"), sortings
	isLeftOut := func(i InformerRow) bool { return !strings.Contains(i.Name, o.Filter) }
	o.Informers = slices.DeleteFunc(o.Informers, isLeftOut)
	o.ByMemory = slices.DeleteFunc(o.ByMemory, isLeftOut)
	o.Controllers = slices.DeleteFunc(o.Controllers, func(c ControllerRow) bool {
		return !strings.Contains(c.Health.Name, o.Filter)
	})
	slices.SortStableFunc(o.Informers, func(a, b InformerRow) int {
		switch o.Sort {
		case "name":
			return cmp.Compare(a.Name, b.Name)
		case "objects":
			return cmp.Compare(b.Health.Objects, a.Health.Objects)
		case "waiting":
			return cmp.Compare(b.Pending, a.Pending)
		case "memory":
			return cmp.Compare(b.memory(), a.memory())
		}
		return 0
	})
	slices.SortStableFunc(o.Controllers, func(a, b ControllerRow) int {
		switch o.Sort {
		case "name":
			return cmp.Compare(a.Health.Name, b.Health.Name)
		case "queued", "waiting":
			return cmp.Compare(b.Queued, a.Queued)
		case "oldest":
			return cmp.Compare(b.Health.Waiting.Duration, a.Health.Waiting.Duration)
		}
		return 0
	})
}

// memory returns the memory of an informer, 0 if it is not known.
func (i InformerRow) memory() int {
	if i.Memory == nil {
		return 0
	}
	return i.Memory.Bytes
}

// Pager leads to the other pages of a list. The links are "" at its ends.
type Pager struct {
	From, To, Count  int
	Earlier, Further string
}

// First is the number of the first element of the page, from 1 on.
func (p Pager) First() int { return p.From + 1 }

// pagerOf returns the part of a list of count elements that the parameter from asks for.
func pagerOf(r *http.Request, count, each int) Pager {
	from, _ := strconv.Atoi(r.FormValue("from")) //nolint:errcheck // 0 is the first page
	from = max(0, min(from, count-1))
	p := Pager{From: from, To: min(count, from+each), Count: count}
	link := func(from int) string {
		query := r.URL.Query()
		query.Set("from", fmt.Sprint(from))
		return strings.TrimPrefix(r.URL.Path, "/") + "?" + query.Encode()
	}
	if from > 0 {
		p.Earlier = link(max(0, from-each))
	}
	if p.To < count {
		p.Further = link(p.To)
	}
	return p
}
