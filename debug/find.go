package debug

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tidings-go/tidings/internal/see/gather"
)

// mostFound bounds the keys that a search offers.
const mostFound = 50

// find returns up to mostFound keys of the caches that match, sorted, each once.
func find(all *gather.Figures, matches func(key string) bool) []string {
	found := map[string]bool{}
	for _, i := range all.Informers {
		if i.View == nil {
			continue
		}
		for key := range i.View.Keys() {
			if len(found) == mostFound {
				return sortedKeys(found)
			}
			if matches(key) {
				found[key] = true
			}
		}
	}
	return sortedKeys(found)
}

// named returns the keys of objects with a name, in any namespace.
func named(all *gather.Figures, name string) []string {
	if strings.Contains(name, "/") {
		return nil
	}
	return find(all, func(key string) bool { return strings.HasSuffix(key, "/"+name) })
}

// containing returns the keys that contain a text. Names that begin with it come first.
func containing(all *gather.Figures, text string) []string {
	found := find(all, func(key string) bool { return strings.Contains(key, text) })
	slices.SortStableFunc(found, func(a, b string) int {
		return beginsWith(b, text) - beginsWith(a, text)
	})
	return found
}

// beginsWith returns 1 if a key or its name begins with a text, and otherwise 0.
func beginsWith(key, text string) int {
	_, name, _ := strings.Cut(key, "/")
	if strings.HasPrefix(key, text) || strings.HasPrefix(name, text) {
		return 1
	}
	return 0
}

// complete answers with the keys that contain a text, as a list in JSON.
func (h *Handler) complete(w http.ResponseWriter, r *http.Request) {
	found := []string{}
	if text := r.FormValue("text"); text != "" {
		found = append(found, containing(h.figures(), text)...)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(found) //nolint:errcheck // the client has gone
}
