package factory_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
)

// TestStreamedListsByGate syncs over HTTP with client-go's feature gate on and off: with it,
// the requests are watches only, also for an empty collection.
func TestStreamedListsByGate(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		t.Run(map[bool]string{true: "on", false: "off"}[enabled], func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, enabled)
			eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
				w.create(t, widget("a", "one", "red"))
				f := l.factory(w.clients(t), settings{})
				h := handle(t, l, f.ForResource(widgets).Informer())
				start(t, f)
				h.check("initial add a/one red")
				if !started(t, l, w, settings{namespace: "b"}).HasSynced() {
					t.Error("the informer of no objects is not synced")
				}
				requests := w.server.Requests()
				if len(requests) == 0 || (requests[0].Verb == "watch") != enabled {
					t.Fatalf("the requests are %v", requests)
				}
				for _, request := range requests {
					if streams := request.Query.Get("sendInitialEvents") == "true"; streams != enabled {
						t.Errorf("%s asks for %v", request.Verb, request.Query)
					}
				}
			})
		})
	}
}

// TestBookmarkEndsList: a server answers every watch with only the bookmark at the end of the
// initial events, without a version, and ends it. The informer is in sync.
func TestBookmarkEndsList(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, true)
	const bookmark = `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}`
	kinds := map[form][2]string{
		typedForm:        {"v1", "Pod"},
		unstructuredForm: {"example.com/v1", "Widget"},
		metadataForm:     {"meta.k8s.io/v1", "PartialObjectMetadata"},
	}
	eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
		w.answer = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				t.Errorf("%s is no watch", r.URL)
			}
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, bookmark, kinds[l.form][0], kinds[l.form][1])
		})
		f := l.factory(w.clients(t), settings{namespace: "a"})
		f.ForResource(widgets)
		stopCh, _ := stopping(t, f)
		f.Start(stopCh)
		if got := f.WaitForCacheSync(after(t, 5*time.Second)); !got[widgets] {
			t.Errorf("%v, want widgets in sync", got)
		}
	})
}

// TestFakeIsListed syncs with a fake although the gate is on, because fakes declare that they
// cannot stream lists.
func TestFakeIsListed(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, true)
	eachWithFakes(t, func(t *testing.T, l library, w *fakeWorld) {
		w.create(t, widget("a", "one", "red"))
		f := l.factory(w.clients(t), settings{namespace: "a"})
		h := handle(t, l, f.ForResource(widgets).Informer())
		start(t, f)
		h.check("initial add a/one red")
		if got := w.lists(widgets); got != 1 {
			t.Errorf("widgets are listed %d times, want once", got)
		}
	})
}

// TestNotInAPath has namespaces that are not valid in a path. The informers of dynamic and of
// metadata clients behave as client-go's, which refuse them or send them unchanged.
func TestNotInAPath(t *testing.T) {
	for n, namespace := range []string{"a/b", "%2e", ".."} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			theirs := map[form]string{}
			eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
				if l.form == typedForm {
					return
				}
				w.create(t, widget("a", "one", "red"))
				var first string
				w.saw = func(r *http.Request) {
					if first == "" {
						first = r.URL.EscapedPath()
					}
				}
				synced := started(t, l, w, settings{namespace: namespace}).HasSynced()
				got := fmt.Sprintf("asks for %q, synced %t", first, synced)
				if l.clientGo {
					theirs[l.form] = got
				} else if got != theirs[l.form] {
					t.Errorf("it %s, client-go's %s", got, theirs[l.form])
				}
			})
		})
	}
}

// TestNoOtherRequests reads a resource in one namespace: the server receives its lists and
// watches and no other request.
func TestNoOtherRequests(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
		paths := map[string]bool{}
		w.saw = func(r *http.Request) { paths[r.URL.Path] = true }
		w.create(t, widget("b", "one", "red"))
		want := "/apis/example.com/v1/namespaces/b/widgets"
		if l.form == typedForm {
			want = "/api/v1/namespaces/b/pods"
		}
		if !started(t, l, w, settings{namespace: "b"}).HasSynced() || len(paths) != 1 || !paths[want] {
			t.Errorf("the server received requests of %v", paths)
		}
	})
}

// TestForbidden: watch error handlers receive the error of the server, in the type that programs
// check.
func TestForbidden(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
		w.answer = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusForbidden)
			fmt.Fprint(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not you","reason":"Forbidden","code":403}`)
		})
		f := l.factory(w.clients(t), settings{})
		failure := failureOf(t, f.ForResource(widgets).Informer())
		start(t, f)
		if err := failure(); !apierrors.IsForbidden(err) {
			t.Errorf("the watch error handler received %v", err)
		}
	})
}
