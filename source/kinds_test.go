package source

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
)

// A gadget is a custom resource with a Go type.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	out := *g
	out.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &out
}

type gadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []gadget `json:"items"`
}

func (l *gadgetList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = append([]gadget(nil), l.Items...)
	return &out
}

// readTyped returns the object that a client made as client-gen does reads by a list, and
// the one it reads by a watch.
func readTyped(t *testing.T, config rest.Config, gvk schema.GroupVersionKind, resource string, object, list runtime.Object, first func(list runtime.Object) any) (listed, watched any) {
	t.Helper()
	scheme := runtime.NewScheme()
	gv := gvk.GroupVersion()
	scheme.AddKnownTypeWithName(gvk, object)
	scheme.AddKnownTypeWithName(gv.WithKind(gvk.Kind+"List"), list)
	metav1.AddToGroupVersion(scheme, gv)
	codecs := serializer.NewCodecFactory(scheme)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme, codecs).WithoutConversion()
	client, err := rest.RESTClientFor(&config)
	if err != nil {
		t.Fatal(err)
	}
	parameters := runtime.NewParameterCodec(scheme)
	if err := client.Get().Namespace("default").Resource(resource).VersionedParams(&metav1.ListOptions{}, parameters).Do(t.Context()).Into(list); err != nil {
		t.Fatal(err)
	}
	stream, err := client.Get().Namespace("default").Resource(resource).VersionedParams(&metav1.ListOptions{Watch: true}, parameters).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	return first(list), (<-stream.ResultChan()).Object
}

// readOurs does the same with a source.
func readOurs[T Object](t *testing.T, config *rest.Config, resource Resource, make func() T) (listed, watched any) {
	t.Helper()
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	s := NewTyped(client, resource, make, RESTOptions{Namespace: "default"})
	page, err := s.List(t.Context(), ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := s.Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close() //nolint:errcheck // the test is over
	events, err := stream.Next()
	if err != nil {
		t.Fatal(err)
	}
	return page.Items[0].Object, events[0].Object
}

// TestTypedKinds reads a built-in and a custom type in JSON as client-go's typed clients
// do: objects have the same kind as there, or the same none.
func TestTypedKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := apisim.New(apisim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close() //nolint:errcheck // the test is over
		gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
		if err := server.Register(apisim.Resource{Group: gv.Group, Version: gv.Version, Name: "gadgets", Kind: "Gadget", Namespaced: true}); err != nil {
			t.Fatal(err)
		}
		for _, o := range []runtime.Object{
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": gv.String(), "kind": "Gadget", "metadata": map[string]any{"namespace": "default", "name": "a"}, "spec": map[string]any{"size": int64(7)},
			}},
			pod("a", ""),
		} {
			if _, err := server.Create(context.Background(), o); err != nil {
				t.Fatal(err)
			}
		}
		config := server.Config()
		config.ContentType, config.AcceptContentTypes = jsonType, jsonType

		wantListed, wantWatched := readTyped(t, *config, gv.WithKind("Gadget"), "gadgets", &gadget{}, &gadgetList{},
			func(l runtime.Object) any { return &l.(*gadgetList).Items[0] })
		listed, watched := readOurs(t, config, Resource{Group: gv.Group, Version: gv.Version, Name: "gadgets", Kind: "Gadget", Scope: ScopeNamespaced}, func() *gadget { return new(gadget) })
		if !reflect.DeepEqual(listed, wantListed) || !reflect.DeepEqual(watched, wantWatched) {
			t.Errorf("custom type:\nlisted  %+v\nwant    %+v\nwatched %+v\nwant    %+v", listed, wantListed, watched, wantWatched)
		}
		if kind := listed.(*gadget).Kind; kind != "Gadget" || watched.(*gadget).Kind != "" {
			t.Errorf("the kinds are %q and %q: the server did not send what this test is about", kind, watched.(*gadget).Kind)
		}

		wantListed, wantWatched = readTyped(t, *config, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", &corev1.Pod{}, &corev1.PodList{},
			func(l runtime.Object) any { return &l.(*corev1.PodList).Items[0] })
		listed, watched = readOurs(t, config, pods, newPod)
		if !reflect.DeepEqual(listed, wantListed) || !reflect.DeepEqual(watched, wantWatched) {
			t.Errorf("built-in type:\nlisted  %+v\nwant    %+v\nwatched %+v\nwant    %+v", listed, wantListed, watched, wantWatched)
		}
	})
}
