package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/engine/served"
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

// Resolve asks the server for the fields that r leaves open: the name of the resource that serves
// its kind, its kind, or its scope. Where the server does not say, [Client.Mapper] is asked. If the
// server does not have the resource, apierrors.IsNotFound is true for the error.
func (c *Client) Resolve(ctx context.Context, r Resource) (Resource, error) {
	return c.resolve(ctx, r, question{fresh: true, limit: maxDiscoveryBytes})
}

// question says how the open fields of a resource are asked for.
type question struct {
	fresh      bool                // an answer that a mapper has kept does not do
	doubted    Resource            // an answer of a mapper that the server has contradicted
	fits       func(Resource) bool // reports whether the answer of a mapper may be right; unless fresh
	onActivity func()              // as described at [ListOptions]
	limit      int                 // bytes of the answer; maxDiscoveryBytes if that is less
}

// resolve completes a resource. A mapper is asked first, as its answer takes no request to the
// server. If it does not fit, the server is asked. A definition can be installed, or come back
// under another name or in another scope, at any time; so no answer is kept here.
func (c *Client) resolve(ctx context.Context, r Resource, q question) (Resource, error) {
	if c.Mapper == nil || r.Name != "" {
		return c.discover(ctx, r, q)
	}
	mapped, unmapped := c.mapped(ctx, r, q.onActivity)
	known := unmapped == nil && mapped != q.doubted
	if known && !q.fresh && q.fits(mapped) {
		return mapped, nil
	}
	served, err := c.discover(ctx, r, q)
	missing := apierrors.IsNotFound(err)
	if err == nil && served != mapped || missing && unmapped == nil {
		c.resetMapper()
	}
	switch {
	case err == nil:
		return served, nil
	case known && (missing || apierrors.IsForbidden(err)):
		return mapped, nil // the server may have no discovery for this client
	case unmapped != nil && !meta.IsNoMatchError(unmapped):
		return r, fmt.Errorf("%w; the mapper fails too: %w", err, unmapped)
	}
	return r, err
}

// mapped asks the mapper. It does not wait for it any longer when ctx has ended.
func (c *Client) mapped(ctx context.Context, r Resource, onActivity func()) (Resource, error) {
	var mapping *meta.RESTMapping
	err, answered := errNoAnswer, make(chan struct{})
	go func() {
		defer close(answered)
		mapper := meta.ToRESTMapperWithContext(c.Mapper)
		mapping, err = mapper.RESTMappingWithContext(ctx, r.groupVersionKind().GroupKind(), r.Version)
	}()
	keepActive(onActivity, answered, ctx.Done())
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err != nil {
		return r, err
	}
	r.Name, r.Scope = mapping.Resource.Resource, ScopeCluster
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		r.Scope = ScopeNamespaced
	}
	return r, nil
}

// errNoAnswer is the error of a mapper that has ended its goroutine.
var errNoAnswer = errors.New("the mapper did not return")

// mapperRest is the least time between two resets of a mapper, which then asks the server for
// everything that it serves.
const mapperRest = 10 * time.Second

// resetMapper makes the mapper ask the server again, after an answer that was wrong.
func (c *Client) resetMapper() {
	mapper, ok := c.Mapper.(meta.ResettableRESTMapper)
	last, now := c.mapperReset.Load(), time.Now().UnixNano()
	if ok && now-last >= int64(mapperRest) && c.mapperReset.CompareAndSwap(last, now) {
		mapper.Reset()
	}
}

// maxDiscoveryBytes bounds the description of one version of a group. A resource takes some
// 300 bytes in it.
const maxDiscoveryBytes = 8 << 20

// discover asks the server.
func (c *Client) discover(ctx context.Context, r Resource, q question) (Resource, error) {
	req := request{
		op: "discover", resource: r.String(), path: groupVersionPath(r.GroupVersion()),
		accept: jsonType, onActivity: q.onActivity,
	}
	body, err := c.document(ctx, req, q.limit)
	if err != nil {
		c.confirm(req, err, func(get served.Get) (bool, error) {
			return served.GroupVersion(ctx, r.GroupVersion(), get)
		})
		return r, err
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

// confirm asks discovery about an answer with 404 that is no Status. Of what it does not serve, the
// server sends a page as any proxy's: unless discovery confirms that, ErrPage is added to the
// error.
func (c *Client) confirm(r request, err error, isServed func(served.Get) (bool, error)) {
	answer, ok := errors.AsType[*Error](err)
	if !ok || !apierrors.IsNotFound(err) || !apierrors.IsUnexpectedServerError(err) {
		return
	}
	found, failed := isServed(func(ctx context.Context, path string) ([]byte, error) {
		return c.document(ctx, request{
			op: "discover", resource: r.resource, path: path, accept: jsonType, onActivity: r.onActivity,
		}, maxDiscoveryBytes)
	})
	if failed != nil || found {
		answer.Err = fmt.Errorf("%w (%w)", answer.Err, ErrPage)
	}
}

// document reads a document of discovery of up to limit bytes, maxDiscoveryBytes if that is less.
func (c *Client) document(ctx context.Context, r request, limit int) ([]byte, error) {
	resp, err := c.get(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := readBody(&pageReader{body: resp.Body, limit: int64(min(limit, maxDiscoveryBytes))})
	if errors.Is(err, ErrFrameTooLarge) && limit >= maxDiscoveryBytes {
		err = fmt.Errorf("%w discovery document: it has more than %d bytes",
			ErrMalformed, maxDiscoveryBytes)
	}
	if err != nil {
		return nil, r.fail(phaseOfBody(err), err)
	}
	return body, nil
}

// isSecrets reports whether the objects are Secrets, as far as the resource is known.
func (r Resource) isSecrets() bool { return dedup.IsSecret(r.Group, r.Name, r.Kind) }
