package guard

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is the object or the collection that a request names in its path.
type target struct {
	resource                     schema.GroupResource
	namespace, name, subresource string
}

// parsePath reads /api/VERSION/… and /apis/GROUP/VERSION/… below the prefix of a server. It
// reports whether the path names a resource.
func parsePath(prefix, path string) (t target, ok bool) {
	below, ok := strings.CutPrefix(path, prefix)
	if !ok || !strings.HasPrefix(below, "/") {
		return t, false
	}
	root, below := segment(below[1:])
	switch root {
	case "api":
	case "apis":
		if t.resource.Group, below = segment(below); t.resource.Group == "" {
			return t, false
		}
	default:
		return t, false
	}
	version, below := segment(below)
	first, below := segment(below)
	// namespaces/NAME/RESOURCE is a resource in a namespace. namespaces/NAME and its
	// subresources are the namespace itself.
	if first == "namespaces" {
		name, more := segment(below)
		third, more := segment(more)
		if third != "" && third != "status" && third != "finalize" {
			t.namespace, first, below = name, third, more
		}
	}
	t.resource.Resource = first
	t.name, below = segment(below)
	t.subresource, _ = segment(below)
	return t, version != "" && first != ""
}

func segment(path string) (first, rest string) {
	first, rest, _ = strings.Cut(path, "/")
	return first, rest
}

// storesNothing reports whether a request for the target leaves every stored object as it is.
// It has the only list of such resources.
func (t *target) storesNothing() bool {
	switch t.resource.Group {
	case "authentication.k8s.io", "authorization.k8s.io": // reviews
		return true
	}
	switch t.subresource {
	case "exec", "attach", "portforward", "proxy": // connections
		return true
	case "token":
		return t.resource == schema.GroupResource{Resource: "serviceaccounts"}
	}
	return false
}

func (t *target) isEvent() bool {
	return t.resource.Resource == "events" &&
		(t.resource.Group == "" || t.resource.Group == "events.k8s.io")
}

// resourceText returns the resource in the form deployments.apps/status.
func (t *target) resourceText() string {
	if t.subresource == "" {
		return t.resource.String()
	}
	return t.resource.String() + "/" + t.subresource
}

// verb returns the verb of RBAC for a method that writes, "" for another method.
func (t *target) verb(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if t.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}

// operation is a request that writes.
type operation struct {
	target
	verb string
}

// operationOf returns the operation of a request. It reports false for a request that stores
// nothing.
func (g *Guard) operationOf(req *http.Request) (op operation, ok bool) {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return op, false
	}
	if op.target, ok = parsePath(g.base.Path, req.URL.Path); !ok || op.storesNothing() {
		return op, false
	}
	if strings.Contains(req.URL.RawQuery, "dryRun") {
		if query, err := url.ParseQuery(req.URL.RawQuery); err == nil && query.Has("dryRun") {
			return op, false
		}
	}
	op.verb = op.target.verb(req.Method)
	if op.verb == "delete" || op.verb == "deletecollection" {
		return op, len(deleteOptionsOf(req).DryRun) == 0
	}
	if op.resource == (schema.GroupResource{Resource: "bindings"}) {
		// No object is stored under bindings: each binding changes the pod that its body names.
		op.resource.Resource = "pods"
	}
	return op, true
}
