package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	webv1 "github.com/tidings-go/tidings/examples/operator/api/v1"
)

func TestOperator(t *testing.T) {
	eachCache(t, testOperator)
}

// world is a server with the operator at work in its namespaces shop and blog. The
// namespace attic is there too, and none of the operator's business.
type world struct {
	*testing.T
	ctx    context.Context
	server *apisim.Server
	api    client.Client // to the server, past the cache
	cache  client.Reader
}

// testOperator runs the operator over TCP, through all that happens to websites.
func testOperator(t *testing.T, caching string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	server := newServer(t, apisim.Options{})
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	create(t, server, website(t, "shop", "front", "hello"))
	create(t, server, website(t, "attic", "front", "dust"))
	create(t, server, leftover())

	o := chosen(t, caching, "shop", "blog")
	o.Controller.SkipNameValidation = new(true)
	config := &rest.Config{Host: url, QPS: -1}
	api, err := client.New(config, client.Options{Scheme: o.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, ctx: ctx, server: server, api: api}
	withoutLeaks(t, func() {
		m, err := newManager(ctx, config, o)
		if err != nil {
			t.Fatal(err)
		}
		w.cache = m.GetClient()
		stop := start(t, m)
		w.firstSites()
		w.edits()
		w.meddling()
		w.reads()
		w.deletes()
		w.attic()
		stop()
		if err := server.Close(); err != nil { // and with it the connections that clients keep
			t.Error(err)
		}
	})
}

// leftover is a ConfigMap of a website that was deleted while no operator ran.
func leftover() *corev1.ConfigMap {
	left := configMap("blog", "bygone-0000", nil)
	left.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: webv1.GroupVersion().String(), Kind: "Website", Name: "bygone", UID: "1234", Controller: new(true),
	}}
	return left
}

// firstSites has one website there before the operator, and one that comes after.
func (w *world) firstSites() {
	w.hasSite("shop", "front", "hello")
	create(w.T, w.server, website(w.T, "blog", "front", "news"))
	w.hasSite("blog", "front", "news")
	w.eventually("what was left over is gone", func() bool { return !w.exists("blog", "bygone-0000", &corev1.ConfigMap{}) })
}

// edits changes a website, and lets its servers become ready.
func (w *world) edits() {
	before := w.site("shop", "front")
	w.change("shop", "front", func(site *webv1.Website) { site.Spec.Page = "good day"; site.Spec.Replicas = 3 })
	w.hasSite("shop", "front", "good day")
	w.eventually("the ConfigMap of the old page is gone", func() bool { return !w.exists("shop", before.Status.ConfigMap, &corev1.ConfigMap{}) })

	var servers appsv1.Deployment
	w.get("shop", "front", &servers)
	if got := *servers.Spec.Replicas; got != 3 {
		w.Errorf("%d replicas, want 3", got)
	}
	servers.Status.ReadyReplicas = 3
	if err := w.api.Status().Update(w.ctx, &servers); err != nil {
		w.Fatal(err)
	}
	w.eventually("the status tells of ready servers", func() bool { return w.site("shop", "front").Status.ReadyReplicas == 3 })
}

// meddling deletes and changes objects of the operator.
func (w *world) meddling() {
	var servers appsv1.Deployment
	w.get("shop", "front", &servers)
	if err := w.api.Delete(w.ctx, &servers); err != nil {
		w.Fatal(err)
	}
	w.eventually("the Deployment is back", func() bool {
		var again appsv1.Deployment
		return w.api.Get(w.ctx, client.ObjectKeyFromObject(&servers), &again) == nil && again.UID != servers.UID
	})

	var page corev1.ConfigMap
	w.get("shop", w.site("shop", "front").Status.ConfigMap, &page)
	page.Data["index.html"] = "graffiti"
	if err := w.api.Update(w.ctx, &page); err != nil {
		w.Fatal(err)
	}
	w.hasSite("shop", "front", "good day")
}

// reads looks at the cache, by key, in lists, and by index.
func (w *world) reads() {
	w.eventually("the cache has it all", func() bool {
		var site webv1.Website
		return w.cache.Get(w.ctx, key("shop/front"), &site) == nil && site.ResourceVersion == w.site("shop", "front").ResourceVersion &&
			len(names(w.T, w.cache, &corev1.ConfigMapList{})) == 2 && len(names(w.T, w.cache, &appsv1.DeploymentList{})) == 2
	})
	ofFront := client.MatchingFields{ownerField: "front"}
	expect(w.T, "Deployments of front", names(w.T, w.cache, &appsv1.DeploymentList{}, ofFront), "blog/front", "shop/front")
	expect(w.T, "in blog", names(w.T, w.cache, &appsv1.DeploymentList{}, ofFront, client.InNamespace("blog")), "blog/front")
	expect(w.T, "ConfigMaps of front in shop", names(w.T, w.cache, &corev1.ConfigMapList{}, ofFront, client.InNamespace("shop")),
		"shop/"+w.site("shop", "front").Status.ConfigMap)
	expect(w.T, "of nobody", names(w.T, w.cache, &corev1.ConfigMapList{}, client.MatchingFields{ownerField: "nobody"}))
	if err := w.cache.List(w.ctx, &corev1.ConfigMapList{}, client.MatchingFields{"spec.nothing": "front"}); err == nil {
		w.Error("a list by an index that is not there: want an error")
	}
}

// deletes takes one website away.
func (w *world) deletes() {
	remove(w.T, w.server, websitesResource(), "shop", "front")
	w.eventually("what it owned is gone", func() bool {
		return len(w.owned("shop", &appsv1.DeploymentList{})) == 0 && len(w.owned("shop", &corev1.ConfigMapList{})) == 0
	})
	w.hasSite("blog", "front", "news")
}

// attic checks that the operator left the third namespace alone and did not look at it.
func (w *world) attic() {
	expect(w.T, "Deployments in the attic", w.owned("attic", &appsv1.DeploymentList{}))
	expect(w.T, "ConfigMaps in the attic", w.owned("attic", &corev1.ConfigMapList{}))
	expect(w.T, "websites in the cache", names(w.T, w.cache, &webv1.WebsiteList{}), "blog/front")
	if err := w.cache.Get(w.ctx, key("attic/front"), &webv1.Website{}); err == nil {
		w.Error("the cache has a website of the attic")
	}
	watched := []schema.GroupVersionResource{websitesResource(), configMapsResource(), appsv1.SchemeGroupVersion.WithResource("deployments")}
	for _, r := range w.server.Requests() {
		if r.Verb == "watch" && (!slices.Contains(watched, r.Resource) || !slices.Contains([]string{"shop", "blog"}, r.Namespace)) {
			w.Errorf("a watch of %s in namespace %q", r.Resource.Resource, r.Namespace)
		}
	}
}

// hasSite waits until a website has its objects and a status that reports them.
func (w *world) hasSite(namespace, name, page string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s/%s shows %q", namespace, name, page), func() bool {
		site := w.site(namespace, name)
		var servers appsv1.Deployment
		var content corev1.ConfigMap
		return site.Status.ObservedGeneration == site.Generation &&
			w.api.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, &servers) == nil &&
			w.api.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: site.Status.ConfigMap}, &content) == nil &&
			servers.Spec.Template.Spec.Volumes[0].ConfigMap.Name == content.Name && content.Data["index.html"] == page &&
			metav1.IsControlledBy(&servers, site) && metav1.IsControlledBy(&content, site)
	})
}

// change makes a change to a website, again if the operator was faster.
func (w *world) change(namespace, name string, change func(*webv1.Website)) {
	w.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		site := w.site(namespace, name)
		change(site)
		return w.api.Update(w.ctx, site)
	})
	if err != nil {
		w.Fatal(err)
	}
}

// site returns a website as the server has it.
func (w *world) site(namespace, name string) *webv1.Website {
	w.Helper()
	site := &webv1.Website{}
	w.get(namespace, name, site)
	return site
}

func (w *world) get(namespace, name string, into client.Object) {
	w.Helper()
	if err := w.api.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		w.Fatal(err)
	}
}

// exists reports whether the server has an object.
func (w *world) exists(namespace, name string, into client.Object) bool {
	w.Helper()
	err := w.api.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return err == nil
}

// owned returns the objects of a website on the server.
func (w *world) owned(namespace string, list client.ObjectList) []string {
	w.Helper()
	return names(w.T, w.api, list, client.InNamespace(namespace), client.HasLabels{"app.kubernetes.io/instance"})
}

func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	eventually(w.T, w.ctx, what, func(context.Context) bool { return holds() })
}
