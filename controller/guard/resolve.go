package guard

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/engine/served"
)

// Resolve asks the server about a write, and returns the write with the version that a cache has to
// show: that of the object. If there is no such object, it is the version of a consistent list of
// one object, and Gone is set. For a collection it is the version of such a list too. The requests
// are reads of the newest state, through Direct. If the server has not served the resource
// for a minute, or cannot read it, the write is returned as Settled.
//
// gvr is the resource of the write, in any version that the server serves. Do not call it before
// NotBefore: the server might still be at work on the write.
func (g *Guard) Resolve(
	ctx context.Context, gvr schema.GroupVersionResource, w Write,
) (Write, error) {
	collection := collectionPath(gvr, w.Namespace)
	var got answer
	var err error
	verb := "get"
	if w.Name != "" {
		got, err = g.read(ctx, gvr, collection+"/"+w.Name, "PartialObjectMetadata", 0)
	}
	isGone := apierrors.IsNotFound(err)
	if w.Name == "" || isGone {
		verb = "list"
		got, err = g.read(ctx, gvr, collection, "PartialObjectMetadataList", 1)
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		w.Settled = true
	case apierrors.IsForbidden(err):
		where := "cluster-wide"
		if w.Namespace != "" {
			where = fmt.Sprintf("in namespace %q", w.Namespace)
		}
		return w, fmt.Errorf("guard: cannot learn the outcome of a write: grant %s on %s %s: %w",
			verb, gvr.GroupResource(), where, err)
	case err != nil:
		return w, fmt.Errorf("guard: cannot learn the outcome of a write to %s: %w", gvr.GroupResource(), err)
	default:
		w.Version, w.Gone = got.version, isGone
		if got.uid != "" {
			w.UID = types.UID(got.uid)
		}
	}
	w.Unknown, w.Conflict, w.NotBefore = false, false, time.Time{}
	g.count(&g.stats.Resolved)
	return w, nil
}

// read reads the metadata of an object, or of a list of up to limit objects; 0 is no limit.
func (g *Guard) read(
	ctx context.Context, gvr schema.GroupVersionResource, path, kind string, limit int,
) (answer, error) {
	req := g.metadata(kind).AbsPath(path)
	if limit > 0 {
		req = req.Param("limit", fmt.Sprint(limit))
	}
	body, err := g.find(ctx, gvr, req)
	if err != nil {
		return answer{}, err
	}
	got := readJSON(body)
	if !got.whole || got.version == "" {
		return got, fmt.Errorf("%w: that of %s has no resource version", served.ErrPage, path)
	}
	return got, nil
}

// newServer returns a client for the guard's own requests.
func newServer(config *rest.Config) (rest.Interface, error) {
	// The serializer is never used, but the client insists on one.
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	config.NegotiatedSerializer = codecs.WithoutConversion()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return rest.UnversionedRESTClientForConfigAndClient(config, client)
}
