package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/engine/served"
)

// ask sends a request of the guard. An answer that refuses it counts if it is a Status.
func ask(ctx context.Context, req *rest.Request) ([]byte, error) {
	body, err := req.Do(ctx).Raw()
	if _, refused := errors.AsType[*apierrors.StatusError](err); !refused {
		return body, err
	}
	status := metav1.Status{}
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" || status.Status != metav1.StatusFailure {
		return nil, fmt.Errorf("%w: %v", served.ErrPage, err)
	}
	return nil, &apierrors.StatusError{ErrStatus: status}
}

// find is ask for a path of a resource. If the server has not served the resource for a minute,
// apierrors.IsNotFound is true for the error: of such a path the server sends the page of any web
// server, so its discovery tells.
func (g *Guard) find(ctx context.Context, gvr schema.GroupVersionResource, req *rest.Request) ([]byte, error) {
	body, err := ask(ctx, req)
	if isPage := errors.Is(err, served.ErrPage); isPage || isUnnamed(err) {
		found, failed := served.Resource(ctx, gvr, func(ctx context.Context, path string) ([]byte, error) {
			return ask(ctx, g.server.Get().AbsPath(path).SetHeader("Accept", "application/json"))
		})
		switch {
		case failed == nil && !found:
			return nil, g.absent(gvr)
		case failed != nil && !isPage:
			return nil, failed
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.absences, gvr)
	return body, err
}

// isUnnamed reports whether an error is that of a server that has not found something, and names no
// object: it may not serve the resource.
func isUnnamed(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	details := metav1.StatusDetails{}
	if ok && status.ErrStatus.Details != nil {
		details = *status.ErrStatus.Details
	}
	return apierrors.IsNotFound(err) && details.Name == ""
}

// absent returns the error of a resource that the server says it does not serve.
func (g *Guard) absent(gvr schema.GroupVersionResource) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	absence := g.absences[gvr]
	lasts := absence.Lasts(time.Now())
	if g.absences[gvr] = absence; lasts {
		return apierrors.NewNotFound(gvr.GroupResource(), "")
	}
	return fmt.Errorf("%w: its discovery has no %s at present", served.ErrPage, gvr.GroupResource())
}
