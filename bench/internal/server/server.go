package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

// Server answers lists and watches of one resource. Make it with [New].
type Server struct {
	spec  Spec
	lists [2]list // before and after a relist
	gone  []byte  // the frame that ends a watch with 410
	news  []byte  // the frames of the updates

	mu       sync.Mutex    // guards what follows
	relisted bool          // which list is sent
	over     chan struct{} // closed when the running watches are to end
	moving   chan struct{} // closed when they are to send the updates
}

// New encodes the objects of a server.
func New(s Spec) (*Server, error) {
	fail := func(err error) (*Server, error) {
		return nil, fmt.Errorf("server: encode %d %s in %s: %w", s.Objects, s.Kind, s.Encoding, err)
	}
	server := &Server{spec: s, over: make(chan struct{}), moving: make(chan struct{})}
	var err error
	if server.lists[0], err = encode(s, false); err != nil {
		return fail(err)
	}
	if s.Relist {
		if server.lists[1], err = encode(s, true); err != nil {
			return fail(err)
		}
	}
	if server.news, err = encodeUpdates(s); err != nil {
		return fail(err)
	}
	gone := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Message: "too old resource version",
	}
	if server.gone, err = appendFrame(nil, s.Encoding, watch.Error, gone); err != nil {
		return fail(err)
	}
	return server, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch watching := query.Get("watch") == "true" || query.Get("watch") == "1"; {
	case r.URL.Path == "/relist" && r.Method == http.MethodPost && s.spec.Relist:
		s.set(true)
	case r.URL.Path == "/updates" && r.Method == http.MethodPost && s.spec.Updates > 0:
		s.move()
	case r.URL.Path == "/reset" && r.Method == http.MethodPost:
		s.set(false)
	case r.URL.Path != s.spec.Kind.Path() || r.Method != http.MethodGet:
		http.NotFound(w, r)
	case watching:
		s.watch(w, r, query.Get("sendInitialEvents") == "true")
	case s.spec.Way == Paged:
		s.page(w, query.Get("limit"), query.Get("continue"))
	default:
		http.Error(w, "this server streams its lists", http.StatusBadRequest)
	}
}

// set says which list is sent from now on, and ends the running watches.
func (s *Server) set(relisted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relisted = relisted
	close(s.over)
	s.over = make(chan struct{})
	select {
	case <-s.moving:
		s.moving = make(chan struct{})
	default:
	}
}

// move has the running watches send the updates, once until the next reset.
func (s *Server) move() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.moving:
	default:
		close(s.moving)
	}
}

// present returns the list to send, its version, and what ends a watch and what has it
// send the updates.
func (s *Server) present() (l list, at string, over, moving <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.relisted {
		return s.lists[1], version(true), s.over, s.moving
	}
	return s.lists[0], version(false), s.over, s.moving
}

// chunk is how much is written at once.
const chunk = 1 << 20

func (s *Server) watch(w http.ResponseWriter, r *http.Request, initial bool) {
	if initial && s.spec.Way == Paged {
		refuse(w)
		return
	}
	list, _, over, moving := s.present()
	w.Header().Set("Content-Type", map[Encoding]string{
		JSON: "application/json", Protobuf: "application/vnd.kubernetes.protobuf;stream=watch",
	}[s.spec.Encoding])
	w.WriteHeader(http.StatusOK)
	if !initial {
		list.bytes = nil
	}
	if !write(w, list.bytes) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case <-moving:
			if !write(w, s.news) {
				return
			}
			moving = nil
		case <-over:
			write(w, s.gone) // the watch ends with the request; that it was written shows at the client
			return
		}
	}
}

// refuse answers as a server does that does not stream lists.
func refuse(w http.ResponseWriter) {
	status := apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"), "this server lists in pages"),
	}).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	if err := json.NewEncoder(w).Encode(status); err != nil {
		return // the client has gone
	}
}

func (s *Server) page(w http.ResponseWriter, limit, token string) {
	list, version, _, _ := s.present()
	first, last := 0, len(list.ends)
	if token != "" {
		n, err := strconv.Atoi(token)
		if err != nil || n < 0 || n > last {
			http.Error(w, "no such continue token", http.StatusBadRequest)
			return
		}
		first = n
	}
	if n, err := strconv.Atoi(limit); err == nil && n > 0 {
		last = min(last, first+n)
	}
	meta := metav1.ListMeta{ResourceVersion: version}
	if remaining := len(list.ends) - last; remaining > 0 {
		meta.Continue, meta.RemainingItemCount = strconv.Itoa(last), new(int64(remaining))
	}
	items := list.bytes[start(list, first):start(list, last)]
	if s.spec.Encoding == JSON && len(items) > 0 {
		items = items[:len(items)-1] // the comma
	}
	head, tail, err := page(s.spec.Encoding, s.spec.Kind, meta, len(items))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", map[Encoding]string{JSON: "application/json", Protobuf: "application/vnd.kubernetes.protobuf"}[s.spec.Encoding])
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(items)+len(tail)))
	for _, part := range [][]byte{head, items, tail} {
		if _, err := w.Write(part); err != nil {
			return // the client has gone
		}
	}
}

// start returns where item i of a list in pages begins.
func start(l list, i int) int {
	if i == 0 {
		return 0
	}
	return l.ends[i-1]
}
