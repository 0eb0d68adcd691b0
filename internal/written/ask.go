package written

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/source"
)

// Answer is the server's answer to a question about a write.
type Answer struct {
	// Settled reports whether there is nothing to wait for, and Shown whether this is because the
	// cache shows the write, as far as that can be known.
	Settled, Shown bool
	resolved       guard.Write
}

// Ask asks the server about a write of a resource. It is settled if a cache is as new as the server,
// or the selection of the cache leaves the object out.
func (w Write) Ask(
	ctx context.Context, server *guard.Guard, by Cache, gvr schema.GroupVersionResource,
) (a Answer, err error) {
	namespace, name := SplitKey(w.Object)
	asked := guard.Write{
		Resource: gvr.GroupResource(), Namespace: namespace, Name: name, UID: types.UID(w.UID),
		Version: w.Version, Gone: w.Gone, Unknown: w.Unknown,
	}
	before := shownBy(by, w.Object)
	a.resolved, err = server.Resolve(ctx, gvr, asked)
	a.Settled = a.resolved.Settled
	switch got := a.resolved; {
	case err != nil || got.Settled:
	case name == "" || got.Gone:
		before.compare(got.Version)
	default:
		before.compareObject(got.Version, string(got.UID))
		if w.isAnswered() && !Reaches(got.Version, w.Version) { // the server has lost the write
			by.SuspectWatch(w.Object, w.Version, w.UID)
		}
	}
	if err != nil || w.Unknown || a.Settled {
		return a, err
	}
	version, uid, cached := by.Received(w.Object)
	switch {
	case name == "":
		a.Shown, err = IsNew(ctx, server, by, gvr, namespace)
		a.Settled = a.Shown
	case w.Gone && a.resolved.Gone: // the cache has yet to show it
	case w.Gone: // or others have made another object of its name, and the cache may have the ended one
		a.Settled = !Another(string(a.resolved.UID), w.UID) || !cached || Another(uid, w.UID)
	case a.resolved.Gone && !cached:
		a.Settled = true
	case !cached && by.Selects():
		var selected bool
		labels, fields := by.Selectors()
		selected, err = server.Selected(ctx, gvr, asked, labels, fields)
		a.Settled = err == nil && !selected
	default: // the object may be another one
		a.Settled = cached && version == a.resolved.Version && !Another(uid, string(a.resolved.UID))
	}
	return a, err
}

// IsNew reports whether a cache is as new as the server for the objects of a namespace. The version of
// the cache does not tell, because objects of other namespaces raise the version of the server.
func IsNew(
	ctx context.Context, server *guard.Guard, by Cache, gvr schema.GroupVersionResource,
	namespace string,
) (bool, error) {
	labels, fields := by.Selectors()
	reached, _ := by.Reached(namespace)
	stored, cached := 0, 0
	for o, err := range server.Objects(ctx, gvr, namespace, labels, fields) {
		if err != nil {
			return false, err
		}
		if !by.Holds(string(o.UID), o.Namespace) {
			continue
		}
		key := source.Key(o.Namespace, o.Name)
		version, uid, ok := by.Received(key)
		if !ok || Another(uid, string(o.UID)) || !Reaches(version, o.ResourceVersion) {
			return false, nil
		}
		if !Reaches(o.ResourceVersion, version) && Reaches(reached, version) {
			by.SuspectWatch(key, version, uid)
			return false, nil
		}
		if _, _, ok := by.Cached(key); ok {
			stored++
		}
	}
	for key := range by.Keys() {
		if in, _ := SplitKey(key); in == namespace || namespace == "" {
			cached++
		}
	}
	return stored == cached, nil
}

// Take takes in the answer to an unknown write.
func (w *Write) Take(a Answer) {
	w.Unknown, w.Gone = false, a.resolved.Gone
	w.Version, w.UID = a.resolved.Version, string(a.resolved.UID)
	if w.Gone && w.UID != "" {
		w.Version = "" // the UID tells
	}
}
