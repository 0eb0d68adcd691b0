package apisim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requestPath is what the path of a request names.
type requestPath struct {
	gvr                          schema.GroupVersionResource
	namespace, name, subresource string
}

// parsePath reads /api/VERSION/… and /apis/GROUP/VERSION/… down to a resource.
func parsePath(path string) (requestPath, bool) {
	var p requestPath
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) >= 3:
		p.gvr.Version = parts[1]
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) >= 4:
		p.gvr.Group, p.gvr.Version = parts[1], parts[2]
		parts = parts[3:]
	default:
		return p, false
	}
	// namespaces/NAME/RESOURCE is a resource in a namespace, but namespaces/NAME
	// and its subresources are the namespace itself.
	if parts[0] == "namespaces" && len(parts) >= 3 && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		p.namespace = parts[1]
		parts = parts[2:]
	}
	if len(parts) > 3 || slices.Contains(parts, "") {
		return p, false
	}
	parts = append(parts, "", "")
	p.gvr.Resource, p.name, p.subresource = parts[0], parts[1], parts[2]
	return p, true
}

// verb returns what a request does, in Kubernetes' words.
func (p requestPath) verb(r *http.Request) string {
	if p.gvr.Resource == "" {
		return r.Method
	}
	switch {
	case r.Method == http.MethodGet && isWatch(r):
		return "watch"
	case r.Method == http.MethodGet && p.name != "":
		return "get"
	case r.Method == http.MethodGet:
		return "list"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodPatch:
		return "patch"
	case r.Method == http.MethodDelete && p.name == "":
		return "deletecollection"
	case r.Method == http.MethodDelete:
		return "delete"
	default:
		return r.Method
	}
}

func isWatch(r *http.Request) bool {
	value := r.URL.Query().Get("watch")
	return value == "true" || value == "1"
}

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if isHealth(r.URL.Path) {
		io.WriteString(w, "ok") //nolint:errcheck // a client that is gone needs no answer
		return
	}
	p, ok := parsePath(r.URL.Path)
	if err := s.authorize(r, p); err != nil {
		writeError(w, r, err)
		return
	}
	if s.serveDiscovery(w, r) {
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	res, err := s.find(p.gvr)
	if err == nil && !p.fits(res) {
		err = errNoResource()
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	verb := p.verb(r)
	if p.subresource == "finalize" && verb != "update" {
		verb = r.Method // there is nothing to read
	}
	if p.subresource == "scale" {
		s.serveScale(w, r, res, p, verb)
		return
	}
	switch verb {
	case "watch":
		s.serveWatch(w, r, res, p)
	case "list":
		s.serveList(w, r, res, p)
	case "get":
		obj, err := s.read(r, res, p)
		s.answer(w, r, res, http.StatusOK, obj, err)
	case "create":
		s.serveCreate(w, r, res, p)
	case "update":
		s.serveUpdate(w, r, res, p)
	case "patch":
		s.servePatch(w, r, res, p)
	case "delete":
		s.serveDelete(w, r, res, p)
	case "deletecollection":
		s.serveDeleteCollection(w, r, res, p)
	default:
		writeError(w, r, errMethod(r.Method))
	}
}

// fits reports whether a path can be one of a resource: the namespace its own, and
// the subresource one that it has.
func (p requestPath) fits(res *resource) bool {
	if p.namespace != "" && !res.Namespaced {
		return false
	}
	switch p.subresource {
	case "":
		return true
	case "status":
		return res.HasStatus
	case "finalize":
		return res.gvr() == namespaces
	case "scale":
		return res.scale != nil
	default:
		return false
	}
}

// answer writes an object, or an error.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, res *resource, code int, obj object, err error) {
	var f form
	var data []byte
	if err == nil {
		f, err = negotiate(r, res, single)
	}
	if err == nil {
		data, err = encode(f, shown(res, f, obj))
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	write(w, f.contentType(), code, data)
}

func write(w http.ResponseWriter, contentType string, code int, data []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	w.Write(data) //nolint:errcheck // a client that is gone needs no answer
}

// writeError writes the Status of an error, in protobuf if that is what the client
// would rather read.
func writeError(w http.ResponseWriter, r *http.Request, err error) { writeStatus(w, r, statusFor(err)) }

func writeStatus(w http.ResponseWriter, r *http.Request, status *metav1.Status) {
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	f := form{protobuf: strings.HasPrefix(strings.TrimSpace(r.Header.Get("Accept")), mediaProtobuf)}
	data, err := encode(f, status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, f.contentType(), int(status.Code), data)
}

// writeJSON writes something that is no API object of a resource.
func writeJSON(w http.ResponseWriter, value runtime.Object) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, mediaJSON, http.StatusOK, data)
}
