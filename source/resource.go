package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/dedup"
)

// Scope is the scope of a resource: whether its objects have a namespace.
type Scope uint8

const (
	// ScopeUnknown is a scope that only the server knows; it is asked when it matters.
	ScopeUnknown Scope = iota
	// ScopeNamespaced is a resource whose objects have a namespace.
	ScopeNamespaced
	// ScopeCluster is a resource whose objects have none.
	ScopeCluster
)

// Resource names a collection of the API.
type Resource struct {
	// Group and Version are those of the API; the core group is "".
	Group, Version string
	// Name is the plural name of the path, as in "deployments". When it is
	// empty, the server is asked for the resource that serves Kind.
	Name string
	// Kind is the kind of its objects. When it is empty, any kind is taken.
	Kind string
	// Scope is whether objects have a namespace.
	Scope Scope
}

// String returns the name in the form resource.version.group.
func (r Resource) String() string {
	name := r.Name
	if name == "" {
		name = r.Kind
	}
	return strings.TrimSuffix(name+"."+r.Version+"."+r.Group, ".")
}

// GroupVersion returns group and version.
func (r Resource) GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

func (r Resource) groupVersionKind() schema.GroupVersionKind {
	return r.GroupVersion().WithKind(r.Kind)
}

// path returns the URL path of the collection in a namespace, "" being all.
func (r Resource) path(namespace string) string {
	p := groupVersionPath(r.GroupVersion())
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	return p + "/" + r.Name
}

func groupVersionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// Resolve asks the server for the fields that r leaves open: the name of the resource that serves its
// kind, its kind, or its scope. If the server does not have the resource, apierrors.IsNotFound
// is true for the error.
func (c *Client) Resolve(ctx context.Context, r Resource) (Resource, error) {
	return c.resolve(ctx, r, nil, maxDiscoveryBytes)
}

// maxDiscoveryBytes bounds the description of one version of a group. A resource takes some
// 300 bytes in it.
const maxDiscoveryBytes = 8 << 20

// resolve is Resolve, and calls onActivity as described at [ListOptions]. The answer may have
// limit bytes, or maxDiscoveryBytes if that is less.
func (c *Client) resolve(ctx context.Context, r Resource, onActivity func(),
	limit int) (Resource, error) {
	req := request{
		op: "discover", resource: r.String(), path: groupVersionPath(r.GroupVersion()),
		accept: jsonType, onActivity: onActivity,
	}
	resp, err := c.get(ctx, req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	body, err := readBody(&pageReader{body: resp.Body, limit: int64(min(limit, maxDiscoveryBytes))})
	if errors.Is(err, ErrFrameTooLarge) && limit >= maxDiscoveryBytes {
		err = fmt.Errorf("%w discovery document: it has more than %d bytes",
			ErrMalformed, maxDiscoveryBytes)
	}
	if err != nil {
		return r, req.fail(phaseOfBody(err), err)
	}
	// list has only the needed fields of an APIResourceList: many empty resources take little
	// memory.
	var list struct {
		Resources []struct {
			Name       string `json:"name"`
			Kind       string `json:"kind"`
			Namespaced bool   `json:"namespaced"`
		} `json:"resources"`
	}
	if err := unmarshalJSON(body, &list); err != nil {
		return r, req.fail(Decoding, fmt.Errorf("%w discovery document: %w", ErrMalformed, err))
	}
	for _, served := range list.Resources {
		same := served.Kind == r.Kind
		if r.Name != "" {
			same = served.Name == r.Name
		}
		if !same || strings.Contains(served.Name, "/") { // that of a subresource
			continue
		}
		r.Name, r.Kind, r.Scope = served.Name, served.Kind, ScopeCluster
		if served.Namespaced {
			r.Scope = ScopeNamespaced
		}
		return r, nil
	}
	return r, req.fail(Answered, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("the server does not serve %s", r),
	}})
}

// isSecrets reports whether the objects are Secrets, as far as the resource is known.
func (r Resource) isSecrets() bool { return dedup.IsSecret(r.Group, r.Name, r.Kind) }
