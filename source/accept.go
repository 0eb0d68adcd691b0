package source

import (
	"context"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// dropParameter is the media type parameter of KEP-5958. A server that has the feature
// ManagedFieldsOptOut leaves the field out. All others ignore the parameter.
const dropParameter = ";drop=metadata.managedFields"

// withoutManagedFields adds the parameter to each clause of an Accept header.
func withoutManagedFields(accept string) string {
	return strings.ReplaceAll(accept, ",", dropParameter+",") + dropParameter
}

// dropsManagedFields reports whether paths leave out the managed fields as a whole.
func dropsManagedFields(paths []string) bool {
	drop, err := fieldpath.Parse(paths)
	return err == nil && drop["metadata"].Drops("managedFields")
}

// get sends a request and returns the answer if its status is 200. The caller closes its body.
//
// A request without managed fields that is answered with 406 is sent again without the parameter.
// When that is answered with 200, the parameter was the reason, and no later request of the client
// has it.
func (c *Client) get(ctx context.Context, r request) (*http.Response, error) {
	if !r.dropManagedFields || c.refusesDrop.Load() {
		return c.send(ctx, r, r.accept)
	}
	resp, err := c.send(ctx, r, withoutManagedFields(r.accept))
	if !apierrors.IsNotAcceptable(err) {
		return resp, err
	}
	resp, err = c.send(ctx, r, r.accept)
	if err == nil {
		c.refusesDrop.Store(true)
	}
	return resp, err
}
