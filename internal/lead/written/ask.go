package written

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller/guard"
)

// Answer is the server's answer to a question about a write.
type Answer struct {
	Settled  bool // there is nothing to wait for
	Listing  bool // the cache lists again, and is to reach the version of the write
	resolved guard.Write
}

// Ask asks the server about a write of a resource, for which a call or a read has waited. It is
// settled if the server has lost it, the cached object is the server's, or the selection of the
// cache leaves the object out. Otherwise a cache is listed again if no event may come, and told
// after ten seconds if one should have.
func (w Write) Ask(
	ctx context.Context, server *guard.Guard, by Cache, gvr schema.GroupVersionResource,
	waited time.Duration,
) (a Answer, err error) {
	namespace, name := SplitKey(w.Object)
	asked := guard.Write{
		Resource: gvr.GroupResource(), Namespace: namespace, Name: name, UID: types.UID(w.UID),
		Version: w.Version, Gone: w.Gone, Unknown: w.Unknown,
	}
	before := stateOf(by, w.Object, w.UID)
	a.resolved, err = server.Resolve(ctx, gvr, asked)
	a.Settled = a.resolved.Settled
	switch got := a.resolved; {
	case err != nil || got.Settled:
	case name == "" || got.Gone:
		before.compare(by, w.Object, got.Version)
	default:
		before.compareObject(by, w.Object, got.Version, string(got.UID))
		if w.isAnswered() && !Reaches(got.Version, w.Version) { // the server has lost the write
			by.SuspectWatch(w.Object, w.Version, w.UID)
		}
	}
	if err != nil || w.Unknown || a.Settled {
		return a, err
	}
	got, s := a.resolved, stateOf(by, w.Object, w.UID)
	mayBeQuiet := name == "" || !s.cached && (s.selects || got.Gone) // no event may come
	switch {
	case (name == "" || got.Gone) && w.Version != "" && !Reaches(got.Version, w.Version):
		a.Settled = true // the server, whose version it is, was set back
	case name == "":
	case w.Gone && got.Gone: // the cache has yet to show it
	case w.Gone: // or others have made another object of its name, and the cache may have the ended one
		a.Settled = !Another(string(got.UID), w.UID) || s.uid == "" && s.shows(got.Version, string(got.UID))
	case got.Gone && !s.cached: // an older state of the object may still come
		a.Settled = w.Version == ""
	case !s.cached && s.selects:
		var selected bool
		labels, fields := by.Selectors()
		selected, err = server.Selected(ctx, gvr, asked, labels, fields)
		a.Settled, mayBeQuiet = err == nil && !selected, false
	default: // the object may be another one
		a.Settled = s.cached && s.version == got.Version && !Another(s.uid, string(got.UID))
	}
	switch {
	case err != nil, a.Settled:
	case mayBeQuiet:
		a.Listing = true
		by.CatchUp(w.Object, w.Version)
	case waited >= askAfter:
		by.SuspectWatch(w.Object, "", "")
	}
	return a, err
}

// Take takes in the answer to an unknown write.
func (w *Write) Take(a Answer) {
	w.Unknown, w.Gone = false, a.resolved.Gone
	w.Version, w.UID = a.resolved.Version, string(a.resolved.UID)
	if w.Gone && w.UID != "" {
		w.Version = "" // the UID tells
	}
}
