package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/engine/served"
)

// Identity is what tells an object from all others.
type Identity interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
}

// Exists reports whether the server still has the object of which last is an earlier state. Another
// object with its name does not count. It reads the newest state, through Direct.
func (g *Guard) Exists(
	ctx context.Context, gvr schema.GroupVersionResource, last Identity,
) (bool, error) {
	address := collectionPath(gvr, last.GetNamespace()) + "/" + last.GetName()
	found, err := g.read(ctx, gvr, address, "PartialObjectMetadata", 0)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("grant get on %s: %w", gvr.GroupResource(), err)
		fallthrough
	case err != nil:
		return false, fmt.Errorf("guard: cannot learn whether %s %s/%s exists: %w",
			gvr.Resource, last.GetNamespace(), last.GetName(), err)
	}
	uid := string(last.GetUID())
	return uid == "" || found.uid == "" || found.uid == uid, nil
}

// Selected reports whether a list with a label and a field selector shows the object of a write.
func (g *Guard) Selected(
	ctx context.Context, gvr schema.GroupVersionResource, w Write, labels, selector string,
) (bool, error) {
	selector = strings.TrimPrefix(selector+","+fields.OneTermEqualSelector("metadata.name", w.Name).
		String(), ",")
	for _, err := range g.Objects(ctx, gvr, w.Namespace, labels, selector) {
		if err != nil {
			return false, fmt.Errorf("guard: cannot learn whether a selection has %s %s/%s: %w",
				w.Resource, w.Namespace, w.Name, err)
		}
		return true, nil
	}
	return false, nil
}

// pageSize is the number of objects in a page of Objects.
const pageSize = 500

// Objects yields the metadata of the objects that a label and a field selector select, in a
// namespace; "" is all namespaces. It reads the newest state, through Direct. An error ends the
// sequence.
func (g *Guard) Objects(
	ctx context.Context, gvr schema.GroupVersionResource, namespace, labels, selector string,
) iter.Seq2[*metav1.PartialObjectMetadata, error] {
	return func(yield func(*metav1.PartialObjectMetadata, error) bool) {
		for token, more := "", true; more; {
			req := g.metadata("PartialObjectMetadataList").AbsPath(collectionPath(gvr, namespace)).
				Param("labelSelector", labels).Param("fieldSelector", selector).
				Param("limit", fmt.Sprint(pageSize))
			if token != "" {
				req = req.Param("continue", token)
			}
			body, err := g.find(ctx, gvr, req)
			page := metav1.PartialObjectMetadataList{}
			if err == nil {
				err = json.Unmarshal(body, &page)
			}
			if err == nil && page.ResourceVersion == "" {
				err = served.ErrPage
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			token = page.Continue
			more = token != ""
		}
	}
}

// Newest returns the version of a consistent list of a resource in a namespace, "" being all.
// Either tells the version of the whole server.
func (g *Guard) Newest(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (string, error) {
	got, err := g.read(ctx, gvr, collectionPath(gvr, namespace), "PartialObjectMetadataList", 1)
	if err != nil {
		return "", fmt.Errorf("guard: cannot read the version of %s: %w", gvr.GroupResource(), err)
	}
	return got.version, nil
}

// metadata returns a GET request for metadata of a kind, such as PartialObjectMetadataList.
func (g *Guard) metadata(kind string) *rest.Request {
	return g.server.Get().SetHeader("Accept",
		"application/json;as="+kind+";g=meta.k8s.io;v=v1,application/json")
}

// collectionPath returns the path of a collection; the namespace "" is all namespaces.
func collectionPath(gvr schema.GroupVersionResource, namespace string) string {
	root := path.Join("/apis", gvr.Group, gvr.Version)
	if gvr.Group == "" {
		root = path.Join("/api", gvr.Version)
	}
	if namespace != "" {
		root = path.Join(root, "namespaces", namespace)
	}
	return path.Join(root, gvr.Resource)
}
