package byresource_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// fakeWorld is client-go's two fakes with the same objects.
type fakeWorld struct {
	dynamic  *fakedynamic.FakeDynamicClient
	metadata *fakemetadata.FakeMetadataClient
}

func newFakes(t *testing.T) *fakeWorld {
	t.Helper()
	silenceErrors(t)
	metadataScheme := fakemetadata.NewTestScheme()
	if err := metav1.AddMetaToScheme(metadataScheme); err != nil {
		t.Fatal(err)
	}
	// Neither scheme knows the kinds, as a program's would not.
	return &fakeWorld{
		dynamic: fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{widgets: "WidgetList", gears: "GearList"}),
		metadata: fakemetadata.NewSimpleMetadataClient(metadataScheme),
	}
}

func (w *fakeWorld) clients(*testing.T) clients {
	return clients{dynamic: w.dynamic, metadata: w.metadata}
}

func (w *fakeWorld) create(t *testing.T, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := w.dynamic.Resource(gvr).Namespace(o.GetNamespace()).Create(t.Context(), o.DeepCopy(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.writer(gvr, o.GetNamespace()).CreateFake(metadataOf(o), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *fakeWorld) update(t *testing.T, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := w.dynamic.Resource(gvr).Namespace(o.GetNamespace()).Update(t.Context(), o.DeepCopy(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.writer(gvr, o.GetNamespace()).UpdateFake(metadataOf(o), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *fakeWorld) delete(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	if err := w.dynamic.Resource(gvr).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.metadata.Resource(gvr).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w *fakeWorld) writer(gvr schema.GroupVersionResource, namespace string) fakemetadata.MetadataClient {
	return w.metadata.Resource(gvr).Namespace(namespace).(fakemetadata.MetadataClient)
}

func (w *fakeWorld) lists(gvr schema.GroupVersionResource) int {
	n := 0
	for _, action := range append(w.dynamic.Actions(), w.metadata.Actions()...) {
		if action.GetVerb() == "list" && action.GetResource() == gvr {
			n++
		}
	}
	return n
}

func (w *fakeWorld) refuse(gvr schema.GroupVersionResource) {
	refused := errors.New("not available")
	for _, fake := range []*clienttesting.Fake{&w.dynamic.Fake, &w.metadata.Fake} {
		fake.PrependReactor("list", gvr.Resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
		fake.PrependWatchReactor(gvr.Resource, func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, refused })
	}
}
