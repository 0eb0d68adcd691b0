package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// contentTypes are those of lists; those of watches have a suffix in protobuf.
var contentTypes = map[Encoding]string{
	JSON: "application/json", Protobuf: "application/vnd.kubernetes.protobuf",
}

// handler answers lists and watches of one resource.
type handler struct {
	*Encoded
	relisted, updated       chan struct{} // closed by a POST
	relistOnce, updatedOnce sync.Once
}

// Handler returns a server of several resources in its first state: neither relisted nor updated.
func Handler(all ...*Encoded) http.Handler {
	mux := http.NewServeMux()
	var handlers []*handler
	for _, e := range all {
		h := &handler{Encoded: e, relisted: make(chan struct{}), updated: make(chan struct{})}
		handlers = append(handlers, h)
		mux.Handle("GET "+e.spec.Kind.Path(), h)
	}
	post := func(path string, prepared func(Spec) bool, do func(*handler)) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			for _, h := range handlers {
				if !prepared(h.spec) {
					http.NotFound(w, r)
					return
				}
				do(h)
			}
		})
	}
	post("/relist", func(s Spec) bool { return s.Relist }, func(h *handler) {
		h.relistOnce.Do(func() { close(h.relisted) })
	})
	post("/updates", func(s Spec) bool { return s.Updates > 0 }, func(h *handler) {
		h.updatedOnce.Do(func() { close(h.updated) })
	})
	discovery(mux, all)
	return mux
}

// discovery answers a client's requests for the resources of a group and version.
func discovery(mux *http.ServeMux, all []*Encoded) {
	lists := map[string]*metav1.APIResourceList{}
	for _, e := range all {
		gvk := e.spec.Kind.GroupVersionKind()
		path := strings.TrimSuffix(e.spec.Kind.Path(), "/"+e.spec.Kind.Resource().Resource)
		if lists[path] == nil {
			lists[path] = &metav1.APIResourceList{
				TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
				GroupVersion: gvk.GroupVersion().String(),
			}
		}
		lists[path].APIResources = append(lists[path].APIResources, metav1.APIResource{
			Name: e.spec.Kind.Resource().Resource, Kind: gvk.Kind, Namespaced: true,
			Verbs: metav1.Verbs{"get", "list", "watch"},
		})
	}
	for path, list := range lists {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentTypes[JSON])
			if err := json.NewEncoder(w).Encode(list); err != nil {
				return // the client has gone
			}
		})
	}
}

// ServeHTTP answers a list or a watch.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch watching := query.Get("watch") == "true" || query.Get("watch") == "1"; {
	case watching:
		h.watch(w, r, query.Get("sendInitialEvents") == "true")
	case h.spec.Paged:
		h.page(w, query.Get("continue"))
	default:
		http.Error(w, "this server streams its lists", http.StatusBadRequest)
	}
}

// list returns the list to send, and the channel that ends the watches after it.
func (h *handler) list() (list, <-chan struct{}) {
	select {
	case <-h.relisted:
		return h.lists[1], nil
	default:
		return h.lists[0], h.relisted
	}
}

func (h *handler) watch(w http.ResponseWriter, r *http.Request, initial bool) {
	if initial && h.spec.Paged {
		refuse(w)
		return
	}
	l, relisted := h.list()
	updated := h.updated
	contentType := contentTypes[h.spec.Encoding]
	if h.spec.Encoding == Protobuf {
		contentType += ";stream=watch"
	}
	w.Header().Set("Content-Type", contentType)
	if !initial {
		l.frames = nil
	}
	for send := l.frames; write(w, send); {
		select {
		case <-r.Context().Done():
			return
		case <-updated:
			updated, send = nil, h.pace(w, h.updates)
		case <-relisted:
			write(w, h.gone) // the watch ends with the request
			return
		}
	}
}

// period is the interval in which a server with a rate sends updates.
const period = 10 * time.Millisecond

// pace sends updates at the rate of the Spec, without regard to their borders, and returns those
// that are left to be sent at once.
func (h *handler) pace(w http.ResponseWriter, frames []byte) []byte {
	if h.spec.Rate == 0 {
		return frames
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	perSecond := len(frames) / h.spec.Updates * h.spec.Rate
	for began, sent := time.Now(), 0; ; <-ticker.C {
		due := min(int(time.Since(began).Seconds()*float64(perSecond)), len(frames))
		if !write(w, frames[sent:due]) || due == len(frames) {
			return nil
		}
		sent = due
	}
}

// chunk is the number of bytes that are written at once.
const chunk = 1 << 20

// write writes in chunks, and reports whether the client took everything.
func write(w http.ResponseWriter, frames []byte) bool {
	for len(frames) > 0 {
		n := min(chunk, len(frames))
		if _, err := w.Write(frames[:n]); err != nil {
			return false // the client has gone
		}
		frames = frames[n:]
	}
	return http.NewResponseController(w).Flush() == nil
}

// refuse answers as a server does that does not stream lists.
func refuse(w http.ResponseWriter) {
	path := field.NewPath("sendInitialEvents")
	status := apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "",
		field.ErrorList{field.Forbidden(path, "this server lists in pages")}).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	write(w, body)
}

// page answers a list request.
func (h *handler) page(w http.ResponseWriter, token string) {
	l, _ := h.list()
	number, err := strconv.Atoi(cmp.Or(token, "0"))
	if err != nil || number < 0 || number >= len(l.pages) {
		http.Error(w, "no such continue token", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", contentTypes[h.spec.Encoding])
	w.Header().Set("Content-Length", strconv.Itoa(len(l.pages[number])))
	write(w, l.pages[number])
}
