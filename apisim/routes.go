package apisim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requestPath holds the names in the path of a request.
type requestPath struct {
	gvr                          schema.GroupVersionResource
	namespace, name, subresource string
}

// parsePath reads /api/VERSION/… and /apis/GROUP/VERSION/… down to a resource.
func parsePath(path string) (p requestPath, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		parts = slices.Insert(parts, 1, "")
	} else if parts[0] != "apis" {
		return p, false
	}
	if len(parts) < 4 {
		return p, false
	}
	p.gvr.Group, p.gvr.Version, parts = parts[1], parts[2], parts[3:]
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

var verbOf = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
	http.MethodDelete: "delete",
}

// verb returns the verb of a request, the HTTP method if the path names no resource.
func (p requestPath) verb(r *http.Request) string {
	reads, watch := r.Method == http.MethodGet, r.URL.Query().Get("watch")
	switch {
	case p.gvr.Resource == "":
		return r.Method
	case reads && (watch == "true" || watch == "1"):
		return "watch"
	case reads && p.name != "":
		return "get"
	case reads:
		return "list"
	case r.Method == http.MethodDelete && p.name == "":
		return "deletecollection"
	default:
		return cmp.Or(verbOf[r.Method], r.Method)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if isTimedOut(r) { // it waited for a fault
		writeError(w, r, errTimeout)
		return
	}
	switch strings.Trim(r.URL.Path, "/") {
	case "healthz", "livez", "readyz":
		io.WriteString(w, "ok") //nolint:errcheck // the client is gone
		return
	}
	if err := s.authorize(r); err != nil {
		writeError(w, r, err)
		return
	}
	if s.serveDiscovery(w, r) || s.serveOpenAPI(w, r) {
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
	x.instance, _ = r.Context().Value(instanceKey{}).(*Instance)
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
	// instance is the server that was asked, nil for the one whose memory is the storage.
	instance *Instance
	status   int // of an answer that is not an error, 0 is 200
}

// answer is an object, with its kind, and the form in which it is sent.
type answer struct {
	form
	object runtime.Object
}

func (x *exchange) serve() {
	var a answer
	err := x.check()
	if err == nil {
		a, err = x.answer()
	}
	switch {
	case err != nil:
		writeError(x.w, x.r, err)
	case a.object != nil:
		x.write(a)
	}
}

// answer carries out the request. A watch has sent its answer already.
func (x *exchange) answer() (answer, error) {
	switch x.verb {
	case "watch":
		return answer{}, x.watch()
	case "list":
		return x.list()
	case "get":
		return x.single(x.get())
	case "create":
		if x.path.subresource != "" {
			return x.createBelow()
		}
		return x.single(x.create())
	case "update":
		return x.single(x.update())
	case "patch":
		return x.single(x.patch())
	case "delete":
		return x.delete()
	default:
		return x.deleteCollection()
	}
}

func (x *exchange) write(a answer) {
	data, err := encode(a.form, a.object)
	if err != nil {
		writeError(x.w, x.r, err)
		return
	}
	write(x.w, a.contentType(), cmp.Or(x.status, http.StatusOK), data)
}

// check refuses paths and verbs that the resource does not support.
func (x *exchange) check() error {
	p, verbs := x.path, x.res.verbs()
	if p.subresource != "" {
		subresources := x.res.subresources()
		at := slices.IndexFunc(subresources, func(s subresource) bool { return s.name == p.subresource })
		if at < 0 {
			return cmp.Or(x.checkKubelet(), error(errNoResource()))
		}
		verbs = subresources[at].verbs
	}
	if p.namespace != "" && !x.res.Namespaced {
		return errNoResource()
	}
	misplaced := x.verb == "create" && p.name != "" && p.subresource == "" ||
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
	return cmp.Or(createdBelow(x.path.subresource), x.res)
}

// body returns the object that stands for a stored one in bodies: itself, or its scale.
func (x *exchange) body(stored object) object {
	if x.path.subresource == "scale" {
		return x.res.scale.of(stored)
	}
	return stored
}

func (x *exchange) single(stored object, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	res := x.bodyResource()
	f, err := x.negotiate(res, singleObject)
	if err != nil {
		return answer{}, err
	}
	return answer{f, inForm(res, f, x.body(stored))}, nil
}

// get returns the object of the path, at the resource version of the request or newer.
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
	if asked == "" {
		return x.res.getLocked(x.path.namespace, x.path.name)
	}
	objects, _ := x.stateLocked()
	obj, ok := objects.Get(key(x.path.namespace, x.path.name))
	if !ok {
		return nil, errNotFound(x.res, x.path.name)
	}
	return obj, nil
}

func write(w http.ResponseWriter, contentType string, code int, data []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	w.Write(data) //nolint:errcheck // the client is gone
}

func statusForm(r *http.Request) form {
	if strings.HasPrefix(strings.TrimSpace(r.Header.Get("Accept")), mediaProtobuf) {
		return form{mediaType: mediaProtobuf}
	}
	return form{}
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusFor(err)
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
