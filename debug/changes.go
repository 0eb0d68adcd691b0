package debug

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/see/fielddiff"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

const (
	// pendingChanges bounds the changes of a view that wait until they are sent, and those of a
	// page without a script.
	pendingChanges = 1000
	// shownFields bounds the fields of a change, shownValue the characters of a value.
	shownFields, shownValue = 20, 80
	// sendTimeout is the time after which the view of a client that does not read changes ends.
	sendTimeout = time.Minute
	// recentFor is the time for which a page without a script waits for changes.
	recentFor = 5 * time.Second
)

// Change is a change of an object, as the views of changes have it.
type Change struct {
	At       time.Time `json:"at"`
	Informer string    `json:"informer"`
	Type     string    `json:"type"`
	Key      string    `json:"key"`
	// Fields are the paths of the fields that differ, up to 20, with their values if
	// Options.Bodies is set. MoreFields counts the others.
	Fields     []Field `json:"fields,omitempty"`
	MoreFields int     `json:"moreFields,omitempty"`
	// Secret reports whether the object is a Secret: its fields are not compared.
	Secret bool `json:"secret,omitempty"`
}

// Field is a field that differs.
type Field struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// ChangesFigures is the JSON form of the page of changes.
type ChangesFigures struct {
	Informer string `json:"informer"`
	// Problems are those of the informer: while it reads nothing, there are no changes.
	Problems []Problem `json:"problems,omitempty"`
	Filter   string    `json:"filter,omitempty"`
	// Changes are the changes in the five seconds after the request. Skipped counts further ones
	// that had no place. A page with the parameter live has none: the script of it asks for the
	// stream.
	Changes []Change `json:"changes"`
	Skipped int      `json:"skipped,omitempty"`
	Live    bool     `json:"-"`
	// Informers are the names of the informers that the page offers.
	Informers []string `json:"-"`
	Bodies    bool     `json:"-"`
}

func (h *Handler) changesPage(r *http.Request, all *gather.Figures) (any, error) {
	f := ChangesFigures{
		Informer: r.FormValue("informer"), Filter: r.FormValue("filter"), Changes: []Change{},
		Bodies: h.o.Bodies, Live: !wantsJSON(r) && r.FormValue("once") == "",
	}
	for _, i := range all.Informers {
		if i.View != nil {
			f.Informers = append(f.Informers, i.Name)
		}
		if i.Name == f.Informer {
			f.Problems = h.cacheProblems(i, now())
		}
	}
	if f.Informer == "" || f.Live {
		return f, nil
	}
	changes, err := h.follow(f.Informer, f.Filter)
	if err != nil {
		return nil, err
	}
	defer changes.remove()
	ctx, cancel := context.WithTimeout(r.Context(), recentFor)
	defer cancel()
	for {
		made, skipped, ok := changes.next(ctx, h.stopped)
		if !ok {
			return f, nil
		}
		f.Skipped += skipped + max(0, len(f.Changes)+len(made)-pendingChanges)
		for _, c := range made[:min(len(made), pendingChanges-len(f.Changes))] {
			f.Changes = append(f.Changes, h.describe(f.Informer, changes.view, c))
		}
	}
}

// stream sends changes as server-sent events, until the client or the handler is closed.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("informer")
	changes, err := h.follow(name, r.FormValue("filter"))
	if err != nil {
		http.Error(w, "debug: "+err.Error(), http.StatusNotFound)
		return
	}
	defer changes.remove()
	w.Header().Set("Content-Type", "text/event-stream")
	controller := http.NewResponseController(w)
	deadline := func(at time.Time) bool {
		controller.SetWriteDeadline(at) //nolint:errcheck // not all servers have deadlines
		return h.stopped.Err() == nil
	}
	defer context.AfterFunc(h.stopped, func() { deadline(time.Now()) })()
	for ok := deadline(time.Now().Add(sendTimeout)); ok; {
		if controller.Flush() != nil || !deadline(time.Time{}) {
			return // a connection of HTTP/2 does not outlive a deadline, even while it is idle
		}
		var made []inspect.Change
		var skipped int
		made, skipped, ok = changes.next(r.Context(), h.stopped)
		ok = ok && deadline(time.Now().Add(sendTimeout))
		if skipped > 0 {
			fmt.Fprintf(w, "event: skipped\ndata: %d\n\n", skipped)
		}
		for _, c := range made {
			form, err := json.Marshal(h.describe(name, changes.view, c))
			if err != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "data: %s\n\n", form); err != nil {
				return
			}
		}
	}
}

// changes holds the changes of an informer that a view has not sent yet.
type changes struct {
	view   inspect.View
	filter string
	remove func()
	signal chan struct{} // has an element if there are changes

	mu      sync.Mutex // guards the rest
	made    []inspect.Change
	skipped int
}

// follow collects the changes of an informer whose key contains a text.
func (h *Handler) follow(name, filter string) (*changes, error) {
	i, err := informerOf(h.figures(), name)
	if err != nil {
		return nil, err
	}
	if i.View == nil {
		return nil, fmt.Errorf("informer %q was released: its changes are not shown", name)
	}
	c := &changes{view: i.View, filter: filter, signal: make(chan struct{}, 1)}
	if c.remove, err = i.View.Follow("debug", c.add); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *changes) add(made inspect.Change) {
	if made.Resync || !strings.Contains(made.Key, c.filter) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.made) == pendingChanges {
		c.skipped++
		return
	}
	c.made = append(c.made, made)
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// next waits for changes. ok is false if a context has ended.
func (c *changes) next(ctx, stopped context.Context) (made []inspect.Change, skipped int, ok bool) {
	select {
	case <-ctx.Done():
		return nil, 0, false
	case <-stopped.Done():
		return nil, 0, false
	case <-c.signal:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	made, skipped = c.made, c.skipped
	c.made, c.skipped = nil, 0
	return made, skipped, true
}

// describe compares the states before and after a change.
func (h *Handler) describe(informer string, view inspect.View, made inspect.Change) Change {
	c := Change{At: now(), Informer: informer, Type: made.Type.String(), Key: made.Key}
	if c.Secret = isSecret(view, made.New) || isSecret(view, made.Old); c.Secret {
		return c
	}
	if made.Old == nil || made.New == nil {
		return c
	}
	for _, d := range fielddiff.Diff(made.Old, made.New) {
		if strings.HasPrefix(d.Path, "metadata.managedFields") || d.Path == "metadata.resourceVersion" {
			continue
		}
		if len(c.Fields) == shownFields {
			c.MoreFields++
			continue
		}
		field := Field{Path: d.Path}
		if h.o.Bodies {
			field.Old, field.New = shown(d.Old), shown(d.New)
		}
		c.Fields = append(c.Fields, field)
	}
	return c
}

// shown returns a value on one line.
func shown(value any) string {
	if value == nil {
		return ""
	}
	return fielddiff.Format(withoutObjects(value), shownValue)
}
