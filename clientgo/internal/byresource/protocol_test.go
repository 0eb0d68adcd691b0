package byresource_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
)

// TestStreamedListsByGate syncs over HTTP with client-go's feature gate on and off: with
// it, watches are all that is asked for.
func TestStreamedListsByGate(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		t.Run(map[bool]string{true: "on", false: "off"}[enabled], func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, enabled)
			eachWithServer(t, func(t *testing.T, l library) {
				w := newServer(t)
				w.create(t, widgets, widget("a", "one", "red"))
				f := l.factory(w.clients(t), 0)
				r := record(t, l, f.ForResource(widgets).Informer())
				start(t, f)
				r.check("initial add a/one red")
				requests := w.server.Requests()
				if len(requests) == 0 {
					t.Fatal("the server was asked for nothing")
				}
				if first := requests[0].Verb == "watch"; first != enabled {
					t.Errorf("the first request is a %s with the gate on: %t", requests[0].Verb, enabled)
				}
				for _, request := range requests {
					if streams := request.Query.Get("sendInitialEvents") == "true"; streams != enabled {
						t.Errorf("%s asks for %v with the gate on: %t", request.Verb, request.Query, enabled)
					}
				}
			})
		})
	}
}

// TestStreamedListEmpty syncs with a collection of nothing.
func TestStreamedListEmpty(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, true)
	eachWithServer(t, func(t *testing.T, l library) {
		w := newServer(t)
		f := l.filtered(w.clients(t), 0, "a", nil)
		informer := f.ForResource(widgets).Informer()
		stopCh, _ := stopping(t, f)
		f.Start(stopCh)
		if got := f.WaitForCacheSync(after(t, time.Minute)); !got[widgets] || !informer.HasSynced() {
			t.Errorf("%v, want widgets in sync", got)
		}
		for _, request := range w.server.Requests() {
			if request.Verb != "watch" {
				t.Errorf("the server was asked to %s, want watches alone", request.Verb)
			}
		}
	})
}

// TestBookmarkEndsList has a server that answers every watch with the bookmark at the end
// of the initial events alone, of no version, and ends it: the informer is in sync.
func TestBookmarkEndsList(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, true)
	const bookmark = `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}`
	kinds := map[form][2]string{
		unstructuredForm: {"example.com/v1", "Widget"},
		metadataForm:     {"meta.k8s.io/v1", "PartialObjectMetadata"},
	}
	eachWithServer(t, func(t *testing.T, l library) {
		w := newServer(t)
		w.answer = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				t.Errorf("%s is no watch", r.URL)
			}
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, bookmark, kinds[l.form][0], kinds[l.form][1])
		})
		f := l.filtered(w.clients(t), 0, "a", nil)
		f.ForResource(widgets)
		stopCh, _ := stopping(t, f)
		f.Start(stopCh)
		if got := f.WaitForCacheSync(after(t, 5*time.Second)); !got[widgets] {
			t.Errorf("%v, want widgets in sync", got)
		}
	})
}

// TestStreamedListRefused has a server that cannot stream lists: it is listed.
func TestStreamedListRefused(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, true)
	eachWithServer(t, func(t *testing.T, l library) {
		w := newServer(t)
		w.server.RefuseStreamedLists(true)
		w.create(t, widgets, widget("a", "one", "red"))
		f := l.factory(w.clients(t), 0)
		r := record(t, l, f.ForResource(widgets).Informer())
		start(t, f)
		r.check("initial add a/one red")
	})
}

// TestFakeIsListed syncs with a fake although the gate is on, because fakes say that they
// cannot stream lists.
func TestFakeIsListed(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, true)
	eachLibrary(t, func(t *testing.T, l library) {
		w := newFakes(t)
		w.create(t, widgets, widget("a", "one", "red"))
		f := l.filtered(w.clients(t), 0, "a", nil)
		r := record(t, l, f.ForResource(widgets).Informer())
		start(t, f)
		r.check("initial add a/one red")
		if got := w.lists(widgets); got != 1 {
			t.Errorf("widgets are listed %d times, want once", got)
		}
	})
}

// TestBuiltInResource follows one whose Go type there is.
func TestBuiltInResource(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library) {
		w := newServer(t)
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", Labels: map[string]string{"color": "red"}}}
		if _, err := w.server.Create(t.Context(), deployment); err != nil {
			t.Fatal(err)
		}
		f := l.filtered(w.clients(t), 0, "a", nil)
		r := record(t, l, f.ForResource(appsv1.SchemeGroupVersion.WithResource("deployments")).Informer())
		start(t, f)
		r.check("initial add a/web red")
		if _, err := w.server.Delete(t.Context(), appsv1.SchemeGroupVersion.WithResource("deployments"), "a", "web"); err != nil {
			t.Fatal(err)
		}
		r.check("delete a/web red")
	})
}

// TestContentIsClientGos compares the objects in the stores of all libraries of a form,
// field by field: as a list brings them, as a streamed list does, and as a watch does.
func TestContentIsClientGos(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		t.Run(map[bool]string{true: "streamed list", false: "list"}[streamed], func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, streamed)
			t.Run("fake", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { compareContent(t, newFakes(t), libraries) })
			})
			t.Run("HTTP", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { compareContent(t, newServer(t), withServer()) })
			})
			t.Run("JSON", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newServer(t)
					w.json = true
					compareContent(t, w, withServer())
				})
			})
		})
	}
}

func compareContent(t *testing.T, w world, libraries []library) {
	t.Helper()
	w.create(t, widgets, widget("a", "listed", "red"))
	var stores []map[string]any
	factories := make([]factory, len(libraries))
	for i, l := range libraries {
		factories[i] = l.factory(w.clients(t), 0)
		factories[i].ForResource(widgets)
		start(t, factories[i])
	}
	w.create(t, widgets, widget("a", "watched", "red"))
	w.create(t, widgets, widget("a", "updated", "red"))
	w.update(t, widgets, widget("a", "updated", "blue"))
	synctest.Wait()
	for _, f := range factories {
		content := map[string]any{}
		store := f.ForResource(widgets).Informer().GetStore()
		for _, key := range store.ListKeys() {
			content[key], _, _ = store.GetByKey(key)
		}
		stores = append(stores, content)
	}
	for i, l := range libraries {
		theirs := slices.IndexFunc(libraries, func(first library) bool { return first.form == l.form }) // client-go's
		if len(stores[i]) != 3 || !reflect.DeepEqual(stores[i], stores[theirs]) {
			t.Errorf("%s holds %v, and %s %v", l.name, stores[i], libraries[theirs].name, stores[theirs])
		}
	}
}
