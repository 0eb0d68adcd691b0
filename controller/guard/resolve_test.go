package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
)

// unknown returns a write of the config map "a" whose outcome is not known.
func unknown(r *rig) Write {
	r.Helper()
	faults := r.server.Inject(apisim.Match{Verb: "create"}, apisim.CutBefore(0))
	defer faults.Lift()
	ctx, call := r.guard.Begin(r.Context(), nil)
	if _, err := r.maps().Create(ctx, configMap("a"), metav1.CreateOptions{}); err == nil {
		r.Fatal("a create has an answer")
	}
	return r.only(call)
}

// TestC03_ResolveAsksTheServer resolves writes for each state that the server may be in.
func TestC03_ResolveAsksTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		before func(r *rig, w *Write)
		want   func(r *rig, w *Write)
		says   string // the text of the error
	}{
		"applied": {want: func(r *rig, w *Write) {
			stored := r.stored(configMaps, "a")
			w.UID, w.Version = stored.GetUID(), stored.GetResourceVersion()
		}},
		"gone": {before: remove, want: func(r *rig, w *Write) { w.Version, w.Gone = r.version(), true }},
		"another object of the name": {
			before: func(r *rig, w *Write) {
				w.UID = "before"
				remove(r, w)
				create(r, configMap("a"))
			},
			want: func(r *rig, w *Write) {
				stored := r.stored(configMaps, "a")
				w.UID, w.Version = stored.GetUID(), stored.GetResourceVersion()
			},
		},
		"a collection": {
			before: func(_ *rig, w *Write) { w.Name = "" },
			want:   func(r *rig, w *Write) { w.Version = r.version() },
		},
		"no resource": {
			before: func(r *rig, w *Write) {
				r.server.RemoveResource(configMaps)
				missing(r, *w)
				time.Sleep(time.Minute)
			},
			want: func(_ *rig, w *Write) { w.Settled = true },
		},
		"a resource without reads": {
			before: func(r *rig, _ *Write) { r.server.Inject(apisim.Match{Verb: "get"}, apisim.Refuse(405, 0)) },
			want:   func(_ *rig, w *Write) { w.Settled = true },
		},
		"get is forbidden": {
			before: func(r *rig, _ *Write) { r.server.Inject(apisim.Match{Verb: "get"}, apisim.Refuse(403, 0)) },
			says:   `grant get on configmaps in namespace "default"`,
		},
		"list is forbidden": {
			before: func(r *rig, w *Write) {
				remove(r, w)
				r.server.Inject(apisim.Match{Verb: "list"}, apisim.Refuse(403, 0))
			},
			says: `grant list on configmaps in namespace "default"`,
		},
		"an error": {
			before: func(r *rig, _ *Write) { r.server.Inject(apisim.Match{Verb: "get"}, apisim.Refuse(500, 0)) },
			says:   "cannot learn the outcome of a write to configmaps",
		},
		"a page for the object": {
			before: func(r *rig, _ *Write) { r.server.Inject(apisim.Match{Verb: "get"}, page(404)) },
			says:   "not one of the API server",
		},
		"a page for the list": {
			before: func(r *rig, w *Write) {
				w.Name = ""
				r.server.Inject(apisim.Match{Verb: "list"}, page(404))
			},
			says: "not one of the API server",
		},
		"a page without methods": {
			before: func(r *rig, _ *Write) { r.server.Inject(apisim.Match{Verb: "get"}, page(405)) },
			says:   "not one of the API server",
		},
		"pages of a server that has no such resource": {
			before: func(r *rig, w *Write) {
				r.server.RemoveResource(configMaps)
				r.server.Inject(apisim.Match{Verb: "get", Resource: "configmaps"}, page(404))
				r.server.Inject(apisim.Match{Verb: "list", Resource: "configmaps"}, page(404))
				missing(r, *w)
				time.Sleep(time.Minute)
			},
			want: func(_ *rig, w *Write) { w.Settled = true },
		},
		"no resource for a moment": {
			before: func(r *rig, w *Write) {
				r.server.RemoveResource(configMaps)
				missing(r, *w)
				time.Sleep(time.Minute - 1)
			},
			says: "its discovery has no configmaps at present",
		},
		"no resource, twice for a moment": {
			before: func(r *rig, w *Write) {
				for _, answer := range []apisim.Fault{page(404), apisim.Refuse(500, 0)} {
					faults := r.server.Inject(apisim.Match{Resource: "configmaps"}, answer)
					hidden := r.server.Inject(apisim.Match{Verb: "GET"}, answering(200, `{"kind":"APIResourceList"}`))
					if _, err := r.guard.Resolve(r.Context(), configMaps, *w); err == nil {
						r.Error("it is resolved")
					}
					faults.Lift()
					hidden.Lift()
					time.Sleep(time.Minute)
				}
				r.server.RemoveResource(configMaps)
			},
			says: "its discovery has no configmaps at present",
		},
		"no version": {
			before: func(r *rig, _ *Write) { r.server.Inject(apisim.Match{Verb: "get"}, answering(200, "{}")) },
			says:   "has no resource version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(r *rig) {
				w := unknown(r)
				if c.before != nil {
					c.before(r, &w)
				}
				want := w
				want.Unknown, want.NotBefore = false, metav1.Time{}.Time
				got, err := r.guard.Resolve(r.Context(), configMaps, w)
				if c.says != "" {
					if err == nil || !strings.Contains(err.Error(), c.says) || got != w {
						r.Errorf("it is resolved as %+v, %v, want %q", got, err, c.says)
					}
					return
				}
				r.must(err)
				c.want(r, &want)
				if got != want {
					r.Errorf("it is resolved as\n%+v, want\n%+v", got, want)
				}
				if got := r.guard.Stats().Resolved; got != 1 {
					r.Errorf("%d are resolved", got)
				}
			})
		})
	}
}

// missing resolves a write for the first time since its resource is gone.
func missing(r *rig, w Write) {
	r.Helper()
	if _, err := r.guard.Resolve(r.Context(), configMaps, w); err == nil || apierrors.IsNotFound(err) {
		r.Errorf("the error is %v", err)
	}
}

func remove(r *rig, _ *Write) {
	_, err := r.server.Delete(r.Context(), configMaps, "default", "a")
	r.must(err)
}

// version returns the newest version of the server.
func (r *rig) version() string {
	r.Helper()
	_, version, err := r.server.List(r.Context(), configMaps, "default")
	r.must(err)
	return version
}

// TestC03_ResolveReadsTheNewestState checks the requests: one object, without a version, which
// a cache of the server may not answer, and the metadata alone.
func TestC03_ResolveReadsTheNewestState(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		w := unknown(r)
		remove(r, &w)
		_, err := r.guard.Resolve(r.Context(), configMaps, w)
		r.must(err)
		all := r.server.Requests()
		gets, lists := all.Of(apisim.Match{Verb: "get"}), all.Of(apisim.Match{Verb: "list"})
		if len(gets) != 1 || len(gets[0].Query) > 0 || len(lists) != 1 || len(lists[0].Query) != 1 ||
			lists[0].Query.Get("limit") != "1" || lists[0].Namespace != "default" {
			r.Errorf("the requests are %v", all)
		}
	})
}

// TestC03_ResolveInAClusterScope has no namespace to name.
func TestC03_ResolveInAClusterScope(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.server.Inject(apisim.Match{Verb: "create"}, apisim.CutBefore(0))
		r.server.Inject(apisim.Match{Verb: "get"}.Nth(1), apisim.Refuse(403, 0))
		ctx, call := r.guard.Begin(r.Context(), nil)
		given := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		if _, err := r.typed.CoreV1().Nodes().Create(ctx, given, metav1.CreateOptions{}); err == nil {
			r.Error("a create has an answer")
		}
		w := r.only(call)
		nodes := corev1.SchemeGroupVersion.WithResource("nodes")
		_, err := r.guard.Resolve(r.Context(), nodes, w)
		if err == nil || !strings.Contains(err.Error(), "grant get on nodes cluster-wide") {
			r.Errorf("the error is %v", err)
		}
		w, err = r.guard.Resolve(r.Context(), nodes, w)
		r.must(err)
		obj, err := r.server.Get(r.Context(), nodes, "", "n")
		r.must(err)
		if w.UID != obj.(*corev1.Node).UID || w.Name != "n" {
			r.Errorf("it is resolved as %+v", w)
		}
	})
}

// TestObjects yields the objects of several pages, and an error.
func TestObjects(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		const n = pageSize + 3
		for i := range n {
			m := configMap(fmt.Sprintf("m-%04d", i))
			m.Labels = map[string]string{"even": fmt.Sprint(i%2 == 0)}
			create(r, m)
		}
		count := func(labels, fields string) (found int, err error) {
			for o, err := range r.guard.Objects(r.Context(), configMaps, "default", labels, fields) {
				if err != nil {
					return found, err
				}
				if o.UID == "" || o.ResourceVersion == "" || o.Namespace != "default" {
					t.Fatalf("the metadata is %+v", o)
				}
				found++
			}
			return found, nil
		}
		for selectors, want := range map[[2]string]int{
			{}: n, {"even=true"}: n/2 + 1, {"", "metadata.name=m-0001"}: 1, {"even=true", "metadata.name=m-0001"}: 0,
		} {
			if found, err := count(selectors[0], selectors[1]); found != want || err != nil {
				t.Errorf("%q: %d objects, want %d: %v", selectors, found, want, err)
			}
		}
		r.server.Inject(apisim.Match{Verb: "list", Page: 2}, apisim.Refuse(403, 0))
		if found, err := count("", ""); found != pageSize || !apierrors.IsForbidden(err) {
			t.Errorf("%d objects before the error %v", found, err)
		}
	})
}
