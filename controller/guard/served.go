package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/served"
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

// find is ask for a path of a resource. If the server does not serve the resource any more,
// apierrors.IsNotFound is true for the error: of such a path the server sends the page of any web server,
// so its discovery tells.
func (g *Guard) find(ctx context.Context, gvr schema.GroupVersionResource, req *rest.Request) ([]byte, error) {
	body, err := ask(ctx, req)
	if errors.Is(err, served.ErrPage) {
		found, failed := served.Resource(ctx, gvr, func(ctx context.Context, path string) ([]byte, error) {
			return ask(ctx, g.server.Get().AbsPath(path).SetHeader("Accept", "application/json"))
		})
		if failed == nil && !found {
			return nil, apierrors.NewNotFound(gvr.GroupResource(), "")
		}
	}
	return body, err
}
