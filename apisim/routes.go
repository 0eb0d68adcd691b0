package apisim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	if s.serveDiscovery(w, r) {
		return
	}
	p, ok := parsePath(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	res, err := s.find(p.gvr)
	if err == nil && p.subresource != "" && (p.subresource != "status" || !res.HasStatus) {
		err = errNoResource()
	}
	if err == nil && p.namespace != "" && !res.Namespaced {
		err = errNoResource()
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	switch p.verb(r) {
	case "watch":
		s.serveWatch(w, r, res, p)
	case "list":
		s.serveList(w, r, res, p)
	case "get":
		obj, err := s.get(res, p.namespace, p.name)
		s.answer(w, r, res, http.StatusOK, obj, err)
	case "create":
		s.serveCreate(w, r, res, p)
	case "update":
		s.serveUpdate(w, r, res, p)
	case "delete":
		s.serveDelete(w, r, res, p)
	default:
		writeError(w, r, errMethod(r.Method))
	}
}

func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	if p.name != "" {
		writeError(w, r, errMethod(r.Method))
		return
	}
	obj, err := s.requestObject(r, res, p)
	if err == nil {
		obj, err = s.create(res, obj, mainResource)
	}
	s.answer(w, r, res, http.StatusCreated, obj, err)
}

func (s *Server) serveUpdate(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	if p.name == "" {
		writeError(w, r, errMethod(r.Method))
		return
	}
	obj, err := s.requestObject(r, res, p)
	if err == nil && obj.GetName() != p.name {
		err = apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), p.name))
	}
	if err == nil {
		mode := mainResource
		if p.subresource == "status" {
			mode = statusOnly
		}
		obj, err = s.update(res, obj, mode)
	}
	s.answer(w, r, res, http.StatusOK, obj, err)
}

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, res *resource, p requestPath) {
	o, err := s.decoder.deleteOptions(r)
	var deleted object
	if err == nil {
		deleted, err = s.delete(res, p.namespace, p.name, o)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeStatus(w, r, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK,
		Details: &metav1.StatusDetails{Name: deleted.GetName(), Group: res.Group, Kind: res.Name, UID: deleted.GetUID()},
	})
}

// requestObject reads the object in a body and gives it the namespace of the path.
func (s *Server) requestObject(r *http.Request, res *resource, p requestPath) (object, error) {
	obj, err := s.decoder.object(r, res)
	if err != nil {
		return nil, err
	}
	switch {
	case obj.GetNamespace() == "":
		obj.SetNamespace(p.namespace)
	case obj.GetNamespace() != p.namespace:
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return obj, nil
}

// answer writes an object, or an error.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, res *resource, code int, obj object, err error) {
	var f form
	var data []byte
	if err == nil {
		f, err = negotiate(r.Header.Get("Accept"), res, false)
	}
	if err == nil {
		data, err = encode(f, shown(res, f, obj))
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	write(w, f.contentType(false), code, data)
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
	write(w, f.contentType(false), int(status.Code), data)
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
