package apisim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requestPath holds the names in the path of a request.
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
	// namespaces/NAME/RESOURCE is a resource in a namespace, but namespaces/NAME and its
	// subresources are the namespace itself.
	if parts[0] == "namespaces" && len(parts) >= 3 &&
		!slices.Contains([]string{"status", "finalize"}, parts[2]) {
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

// verb returns the verb of a request, the HTTP method if the path names no resource.
func (p requestPath) verb(r *http.Request) string {
	if p.gvr.Resource == "" {
		return r.Method
	}
	switch r.Method {
	case http.MethodGet:
		if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			return "watch"
		}
		if p.name != "" {
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if p.name == "" {
			return "deletecollection"
		}
		return "delete"
	default:
		return r.Method
	}
}

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch strings.Trim(r.URL.Path, "/") {
	case "healthz", "livez", "readyz":
		io.WriteString(w, "ok") //nolint:errcheck // the client is gone
		return
	}
	if err := s.authorize(r); err != nil {
		writeError(w, r, err)
		return
	}
	if s.serveDiscovery(w, r) {
		return
	}
	p, ok := parsePath(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	res, err := s.find(p.gvr)
	if err != nil {
		writeError(w, r, err)
		return
	}
	x := &exchange{server: s, w: w, r: r, path: p, verb: p.verb(r), res: res, call: callOf(r)}
	x.serve()
}

// exchange is a request to a resource, and its answer.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	path   requestPath
	verb   string
	res    *resource
	call   *call
	status int // of an answer that is not an error, 0 is 200
}

// answer is a body and its media type.
type answer struct {
	data        []byte
	contentType string
}

func (x *exchange) serve() {
	if err := x.check(); err != nil {
		writeError(x.w, x.r, err)
		return
	}
	var a answer
	var err error
	switch x.verb {
	case "watch":
		if err = x.watch(); err == nil {
			return
		}
	case "list":
		a, err = x.list()
	case "get":
		a, err = x.single(x.get())
	case "create":
		a, err = x.single(x.create())
	case "update":
		a, err = x.single(x.update())
	case "patch":
		a, err = x.single(x.patch())
	case "delete":
		a, err = x.delete()
	case "deletecollection":
		a, err = x.deleteCollection()
	}
	if err != nil {
		writeError(x.w, x.r, err)
		return
	}
	write(x.w, a.contentType, cmp.Or(x.status, http.StatusOK), a.data)
}

// check refuses a path that the resource does not have, and a verb that it has not.
func (x *exchange) check() error {
	p, verbs := x.path, x.res.verbs()
	if p.subresource != "" {
		subresources := x.res.subresources()
		at := slices.IndexFunc(subresources, func(s subresource) bool { return s.name == p.subresource })
		if at < 0 {
			return errNoResource()
		}
		verbs = subresources[at].verbs
	}
	if p.namespace != "" && !x.res.Namespaced {
		return errNoResource()
	}
	misplaced := x.verb == "create" && p.name != "" ||
		(x.verb == "update" || x.verb == "patch") && p.name == ""
	if misplaced || !slices.Contains(verbs, x.verb) {
		return errMethod(x.r.Method)
	}
	return nil
}

// bodyResource returns the resource of the objects in bodies and answers.
func (x *exchange) bodyResource() *resource {
	if x.path.subresource == "scale" {
		return scales()
	}
	return x.res
}

// body returns the object in an answer for a stored object: itself, or its scale.
func (x *exchange) body(stored object) object {
	if x.path.subresource == "scale" {
		return x.res.scale.of(stored)
	}
	return stored
}

// single returns the answer for an object.
func (x *exchange) single(stored object, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	res := x.bodyResource()
	f, err := x.negotiate(res, singleObject)
	if err != nil {
		return answer{}, err
	}
	data, err := encode(f, inForm(res, f, x.body(stored)))
	return answer{data, f.contentType()}, err
}

// get returns the object of the path, as new as the request asks for.
func (x *exchange) get() (object, error) {
	asked := x.r.URL.Query().Get("resourceVersion")
	version, err := parseVersion(asked)
	if err == nil {
		err = x.await(version)
	}
	if err != nil {
		return nil, err
	}
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	replica := x.replica()
	if replica == nil || asked == "" {
		return x.res.getLocked(x.path.namespace, x.path.name)
	}
	obj, ok := replica.objectsOfLocked(x.res).Get(key(x.path.namespace, x.path.name))
	if !ok {
		return nil, errNotFound(x.res, x.path.name)
	}
	return obj, nil
}

// replica returns the lagging replica that serves the request, nil if there is none.
func (x *exchange) replica() *replica {
	if r := x.call.replica; r != nil && r.isBehind() {
		return r
	}
	return nil
}

func write(w http.ResponseWriter, contentType string, code int, data []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	w.Write(data) //nolint:errcheck // the client is gone
}

// writeError writes the Status of an error.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	writeStatus(w, r, statusFor(err))
}

// statusForm returns the form of a Status: protobuf if a client prefers that, else JSON.
func statusForm(r *http.Request) form {
	if strings.HasPrefix(strings.TrimSpace(r.Header.Get("Accept")), mediaProtobuf) {
		return form{mediaType: mediaProtobuf}
	}
	return form{}
}

// writeStatus writes the Status of a failure.
func writeStatus(w http.ResponseWriter, r *http.Request, status *metav1.Status) {
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	f := statusForm(r)
	data, err := encode(f, status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, f.contentType(), int(status.Code), data)
}

// writeJSON writes a value that is not an object of a resource.
func writeJSON(w http.ResponseWriter, contentType string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, contentType, http.StatusOK, data)
}
