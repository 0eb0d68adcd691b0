package main

import (
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	webv1 "github.com/tidings-go/tidings/examples/operator/api/v1"
)

// form is a way to read websites. Each has an informer of its own.
type form struct {
	name string
	one  client.Object
	list client.ObjectList
}

func forms() []form {
	untyped, untypedList := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	metadata, metadataList := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
	for _, obj := range []client.Object{untyped, metadata} {
		obj.GetObjectKind().SetGroupVersionKind(webv1.GroupVersion().WithKind("Website"))
	}
	for _, list := range []client.ObjectList{untypedList, metadataList} {
		list.GetObjectKind().SetGroupVersionKind(webv1.GroupVersion().WithKind("WebsiteList"))
	}
	return []form{
		{"typed", &webv1.Website{}, &webv1.WebsiteList{}},
		{"unstructured", untyped, untypedList},
		{"metadata", metadata, metadataList},
	}
}

// byTone is an index of websites by a label.
const byTone = "metadata.labels.tone"

func TestForms(t *testing.T) {
	eachCache(t, func(t *testing.T, caching string) {
		synctest.Test(t, func(t *testing.T) { testForms(t, caching) })
	})
}

// testForms reads one kind in three forms from one cache, through its changes.
func testForms(t *testing.T, caching string) {
	server := newServer(t, apisim.Options{})
	create(t, server, website(t, "shop", "front", "hello"))
	c := startCache(t, server, caching, cache.Options{}, func(c cache.Cache) {
		for _, f := range forms() {
			if err := c.IndexField(t.Context(), f.one, byTone, tone); err != nil {
				t.Fatalf("index %s: %v", f.name, err)
			}
		}
	})
	check := func(when string, plain, kind []string) {
		t.Helper()
		synctest.Wait()
		for _, f := range forms() {
			expect(t, when+", plain, "+f.name, names(t, c, f.list, client.MatchingFields{byTone: "plain"}), plain...)
			expect(t, when+", kind, "+f.name, names(t, c, f.list, client.MatchingFields{byTone: "kind"}, client.InNamespace("shop")), kind...)
			expect(t, when+", kind by label, "+f.name, names(t, c, f.list, client.MatchingLabels{"tone": "kind"}), kind...)
			checkForm(t, c, f)
		}
	}
	check("first", []string{"shop/front"}, nil)

	create(t, server, website(t, "blog", "side", "more"))
	check("after a create", []string{"blog/side", "shop/front"}, nil)

	changed := website(t, "shop", "front", "good day")
	changed.SetLabels(map[string]string{"tone": "kind"})
	update(t, server, changed)
	check("after an update", []string{"blog/side"}, []string{"shop/front"})
	if page, untyped := pages(t, c); page != "good day" || untyped != "good day" {
		t.Errorf("the page is %q typed and %q unstructured, want good day", page, untyped)
	}

	remove(t, server, websitesResource(), "shop", "front")
	check("after a delete", []string{"blog/side"}, nil)
	endWatches(t, server)
}

// tone is the value of the index byTone.
func tone(obj client.Object) []string {
	if tone, ok := obj.GetLabels()["tone"]; ok {
		return []string{tone}
	}
	return []string{"plain"}
}

// checkForm checks that everything which a form lists can be got too, in that form.
func checkForm(t *testing.T, reader client.Reader, f form) {
	t.Helper()
	for _, name := range names(t, reader, f.list) {
		if err := reader.Get(t.Context(), key(name), f.one); err != nil {
			t.Errorf("get %s %s: %v", f.name, name, err)
		}
		if got, want := f.one.GetObjectKind().GroupVersionKind(), webv1.GroupVersion().WithKind("Website"); got != want {
			t.Errorf("%s %s has the kind %v, want %v", f.name, name, got, want)
		}
	}
}

// pages returns the page of shop/front as the two forms that hold it have it.
func pages(t *testing.T, reader client.Reader) (page, untyped string) {
	t.Helper()
	var site webv1.Website
	if err := reader.Get(t.Context(), key("shop/front"), &site); err != nil {
		t.Fatal(err)
	}
	obj := forms()[1].one.(*unstructured.Unstructured)
	if err := reader.Get(t.Context(), key("shop/front"), obj); err != nil {
		t.Fatal(err)
	}
	untyped, _, err := unstructured.NestedString(obj.Object, "spec", "page")
	if err != nil {
		t.Fatal(err)
	}
	return site.Spec.Page, untyped
}

// TestIndexAfterStart adds an index to an informer that holds objects.
func TestIndexAfterStart(t *testing.T) {
	eachCache(t, func(t *testing.T, caching string) {
		synctest.Test(t, func(t *testing.T) {
			server := newServer(t, apisim.Options{})
			create(t, server, website(t, "shop", "front", "hello"))
			c := startCache(t, server, caching, cache.Options{})
			expect(t, "all", names(t, c, &webv1.WebsiteList{}), "shop/front")
			if err := c.IndexField(t.Context(), &webv1.Website{}, byTone, tone); err != nil {
				t.Fatal(err)
			}
			create(t, server, website(t, "blog", "side", "more"))
			synctest.Wait()
			expect(t, "plain", names(t, c, &webv1.WebsiteList{}, client.MatchingFields{byTone: "plain"}), "blog/side", "shop/front")
			if err := c.IndexField(t.Context(), &webv1.Website{}, byTone, tone); err == nil {
				t.Error("a second index of the same name: want an error")
			}
		})
	})
}
