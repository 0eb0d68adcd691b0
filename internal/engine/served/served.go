package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrPage is the error of an answer that something else than the API server has given.
var ErrPage = errors.New("the answer is not one of the API server")

// Get reads a path of the server. It returns an error unless the status is 200.
type Get func(ctx context.Context, path string) ([]byte, error)

// Resource reports whether the server serves a resource. It sends one or two requests.
func Resource(ctx context.Context, gvr schema.GroupVersionResource, get Get) (bool, error) {
	path := "/api/" + gvr.Version
	if gvr.Group != "" {
		if ok, err := GroupVersion(ctx, gvr.GroupVersion(), get); err != nil || !ok {
			return false, err
		}
		path = "/apis/" + gvr.GroupVersion().String()
	}
	resources := metav1.APIResourceList{}
	err := get.document(ctx, path, "APIResourceList", &resources)
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool {
		return r.Name == gvr.Resource
	}), err
}

// GroupVersion reports whether the server serves a version of a group; every server serves those of the
// core group. It sends a request.
func GroupVersion(ctx context.Context, gv schema.GroupVersion, get Get) (bool, error) {
	if gv.Group == "" {
		return true, nil
	}
	groups := metav1.APIGroupList{}
	err := get.document(ctx, "/apis", "APIGroupList", &groups)
	return slices.ContainsFunc(groups.Groups, func(group metav1.APIGroup) bool {
		return slices.ContainsFunc(group.Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return v.GroupVersion == gv.String()
		})
	}), err
}

// document reads a document of a kind.
func (get Get) document(ctx context.Context, path, kind string, document any) error {
	body, err := get(ctx, path)
	found := metav1.TypeMeta{}
	switch {
	case err != nil:
		return err
	case json.Unmarshal(body, &found) != nil || found.Kind != kind:
		return fmt.Errorf("%w: %s is no %s", ErrPage, path, kind)
	}
	return json.Unmarshal(body, document)
}
