package apisim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

// parsePath parses /api/VERSION/… and /apis/GROUP/VERSION/… down to a resource. It returns no names
// for other paths.
func parsePath(path string) (p requestPath) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		parts = slices.Insert(parts, 1, "")
	} else if parts[0] != "apis" {
		return p
	}
	if len(parts) < 4 {
		return p
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
		return p
	}
	parts = append(parts, "", "")
	p.gvr.Resource, p.name, p.subresource = parts[0], parts[1], parts[2]
	return p
}

var verbOf = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch",
	http.MethodDelete: "delete",
}

// verb returns the verb of a request, which is the HTTP method if the path has no resource.
func (p requestPath) verb(method string, query url.Values) string {
	reads, watch := method == http.MethodGet, false
	given := query["watch"]
	runtime.Convert_Slice_string_To_bool(&given, &watch, nil) //nolint:errcheck // it returns none
	switch {
	case p.gvr.Resource == "":
		return method
	case reads && watch:
		return "watch"
	case reads && p.name != "":
		return "get"
	case reads:
		return "list"
	case method == http.MethodDelete && p.name == "":
		return "deletecollection"
	default:
		return cmp.Or(verbOf[method], method)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(inflightKey{}).(*inflight)
	if isTimedOut(r) { // the request waited for a fault
		writeError(w, r, errTimeout)
		return
	}
	switch strings.Trim(r.URL.Path, "/") {
	case "healthz", "livez", "readyz":
		io.WriteString(w, "ok") //nolint:errcheck // the client is gone
		return
	}
	if err := s.authorize(r, c.asked); err != nil {
		writeError(w, r, err)
		return
	}
	if s.serveDiscovery(w, r) || s.serveOpenAPI(w, r) {
		return
	}
	if c.path.gvr.Resource == "" {
		http.NotFound(w, r)
		return
	}
	res, err := s.find(c.path.gvr)
	if err != nil {
		writeError(w, r, err)
		return
	}
	x := &exchange{inflight: c, server: s, w: w, r: r, res: res}
	x.instance, _ = r.Context().Value(instanceKey{}).(*Instance)
	x.serve()
}

// exchange is a request to a resource, and its answer.
type exchange struct {
	*inflight
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	res    *resource
	// instance is the instance that received the request, nil for the server itself.
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
	switch x.asked.Verb {
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
	p, verb, verbs := x.path, x.asked.Verb, x.res.verbs()
	if p.subresource != "" {
		subresources := x.res.subresources()
		at := slices.IndexFunc(subresources, func(s subresource) bool { return s.name == p.subresource })
		if at < 0 {
			return cmp.Or(x.checkKubelet(), error(errNoResource()))
		}
		verbs = subresources[at].verbs
	}
	// All namespaces at once can be listed and watched, and nothing else.
	outside := x.res.Namespaced && p.namespace == "" &&
		(p.name != "" || verb != "list" && verb != "watch")
	if p.namespace != "" && !x.res.Namespaced || outside && (p.name != "" || !x.res.typed) {
		return errNoResource()
	}
	misplaced := outside || verb == "create" && p.name != "" && p.subresource == "" ||
		(verb == "update" || verb == "patch") && p.name == ""
	if misplaced || !slices.Contains(verbs, verb) {
		return errGeneric(http.StatusMethodNotAllowed, "")
	}
	return nil
}

// bodyResource returns the resource of the objects in bodies and answers.
func (x *exchange) bodyResource() *resource {
	kind, ok := bodies[x.path.subresource]
	if !ok {
		return x.res
	}
	return &resource{typed: true, Resource: Resource{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Name: x.path.subresource,
		Namespaced: true,
	}}
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
		return s.getLocked(x.res, x.path.namespace, x.path.name)
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
