package clientgo_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/apisim"
	shopv1 "github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1"
)

var widgetsResource = shopv1.SchemeGroupVersion.WithResource("widgets")

func widget(name, color string, pieces int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": shopv1.SchemeGroupVersion.String(),
		"kind":       "Widget",
		"metadata":   map[string]any{"namespace": "default", "name": name},
		"spec":       map[string]any{"color": color, "pieces": pieces},
	}}
}

func makeWidgets(t *testing.T, binaries string) string {
	c := newCluster(t, nil)
	err := c.server.Register(apisim.Resource{
		Group: widgetsResource.Group, Version: widgetsResource.Version, Name: widgetsResource.Resource,
		Kind: "Widget", Namespaced: true, HasStatus: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "closed"}}, widget("gear", "blue", 2))
	p := c.start(binaries, "customtype")
	p.expect("default/gear waits: the shop is closed")
	c.delete(configMapsResource, "default", "closed")
	p.expect("default/gear: blue piece 1 of 2 is made")
	p.expect("default/gear: blue piece 2 of 2 is made")

	edit(c, widgetsResource, "default", "gear", func(w *unstructured.Unstructured) {
		w.Object["spec"] = map[string]any{"color": "red", "pieces": int64(3)}
	})
	p.expect("default/gear: red piece 3 of 3 is made")
	c.create(widget("lever", "green", 1))
	p.expect("default/lever: green piece 1 of 1 is made")
	c.delete(widgetsResource, "default", "gear")
	p.expect("default/gear is cancelled")

	obj, err := c.server.Get(t.Context(), widgetsResource, "default", "lever")
	if err != nil {
		t.Fatal(err)
	}
	if made, _, err := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "status", "made"); err != nil || made != 1 {
		t.Errorf("on the server %d pieces are made (%v)", made, err)
	}
	return p.interrupt()
}
