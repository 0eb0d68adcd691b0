package apisim

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// typedClient returns a client of a group that knows the options of a delete as a kind
// of the groups given, as clients do that are made for a Go type: their bodies say that
// the options are of the first of these.
func (b *bench) typedClient(gv schema.GroupVersion, contentType string, optionsOf ...schema.GroupVersion) *rest.RESTClient {
	b.Helper()
	scheme := runtime.NewScheme()
	for _, known := range optionsOf {
		scheme.AddKnownTypes(known, &metav1.DeleteOptions{})
	}
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{})
	c := config(b.server, contentType)
	c.GroupVersion, c.APIPath = &gv, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		b.Fatal(err)
	}
	return client
}

func TestDeleteOptionsMayBeOfAnyGroup(t *testing.T) {
	meta, core, widgets := schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}, schema.GroupVersion{Version: "v1"}, widgetsV1.GroupVersion()
	for _, test := range []struct {
		name, contentType, resource string
		gv                          schema.GroupVersion
		optionsOf                   []schema.GroupVersion
	}{
		{"a custom kind, of its group", mediaJSON, "widgets", widgets, []schema.GroupVersion{widgets}},
		{"a custom kind, of its group and of meta.k8s.io", mediaJSON, "widgets", widgets, []schema.GroupVersion{widgets, meta}},
		{"a custom kind, of meta.k8s.io", mediaJSON, "widgets", widgets, []schema.GroupVersion{meta}},
		{"a custom kind, of the core group", mediaJSON, "widgets", widgets, []schema.GroupVersion{core}},
		{"a custom kind, in protobuf", mediaProtobuf, "widgets", widgets, []schema.GroupVersion{widgets}},
		{"a built-in kind, of its group", mediaJSON, "deployments", appsv1.SchemeGroupVersion, []schema.GroupVersion{appsv1.SchemeGroupVersion}},
		{"a built-in kind, of meta.k8s.io", mediaJSON, "deployments", appsv1.SchemeGroupVersion, []schema.GroupVersion{meta}},
		{"a built-in kind, in protobuf", mediaProtobuf, "deployments", appsv1.SchemeGroupVersion, []schema.GroupVersion{appsv1.SchemeGroupVersion}},
		{"a built-in kind, of meta.k8s.io in protobuf", mediaProtobuf, "deployments", appsv1.SchemeGroupVersion, []schema.GroupVersion{meta}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				b.define()
				b.seed(widget("v1", "a"), widget("v1", "b"))
				b.deployment("a", "x")
				b.deployment("b", "x")
				client := b.typedClient(test.gv, test.contentType, test.optionsOf...)
				remove := func(name string, o metav1.DeleteOptions) error {
					return client.Delete().Namespace("default").Resource(test.resource).Name(name).Body(&o).Do(b.ctx).Error()
				}
				other := types.UID("another")
				if err := remove("a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
					b.Errorf("a precondition that does not hold: %v", err)
				}
				if err := remove("a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
					b.Errorf("a dry run: %v", err)
				}
				if err := remove("a", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}); err != nil {
					b.Errorf("a delete: %v", err)
				}
				if err := remove("a", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
					b.Errorf("a second delete: %v", err)
				}
				b.leftOf(test.resource, test.gv, "b")
				if err := client.Delete().Namespace("default").Resource(test.resource).Body(&metav1.DeleteOptions{}).Do(b.ctx).Error(); err != nil && !runtime.IsNotRegisteredError(err) {
					b.Errorf("a delete of all: %v", err)
				}
				b.leftOf(test.resource, test.gv)
			})
		})
	}
}

// leftOf compares the names of the objects of a resource.
func (b *bench) leftOf(resource string, gv schema.GroupVersion, want ...string) {
	b.Helper()
	list, err := b.dynamic().Resource(gv.WithResource(resource)).List(b.ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	b.want("left of "+resource, names, want...)
}

func TestDeleteOptionsThatAreRefused(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		for body, says := range map[string]string{
			`{`: "the delete options cannot be read", `[]`: "the delete options cannot be read",
			`{"kind":"ConfigMap","apiVersion":"v1"}`: "the delete options cannot be read",
			`{"propagationPolicy":"Sideways"}`:       "propagationPolicy",
		} {
			code, text := b.get("DELETE", "/api/v1/namespaces/default/configmaps/a", body, "Content-Type", mediaJSON)
			if code < 400 || code >= 500 || !strings.Contains(text, says) {
				b.Errorf("%s: %d %s, want %q", body, code, text, says)
			}
		}
		b.leftOf("configmaps", schema.GroupVersion{Version: "v1"}, "a")
	})
}
