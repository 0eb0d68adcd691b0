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

func followWidgets(t *testing.T, binaries string) string {
	c := newCluster(t, nil)
	err := c.server.Register(apisim.Resource{
		Group: widgetsResource.Group, Version: widgetsResource.Version, Name: widgetsResource.Resource,
		Kind: "Widget", Namespaced: true, HasStatus: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "closed"}})
	p := c.start(binaries, "customtype")
	p.expect("the caches are filled")
	c.create(widget("gear", "blue", 2))
	p.expect("default/gear: 0 of 2 blue pieces are made")
	c.delete(configMapsResource, "default", "closed")
	p.expect("the shop of default opens")
	p.expect("default/gear: 0 of 2 blue pieces are made")
	edit(c, widgetsResource, "default", "gear", func(w *unstructured.Unstructured) {
		w.Object["spec"] = map[string]any{"color": "red", "pieces": int64(3)}
		w.Object["status"] = map[string]any{"made": int64(1)}
	})
	p.expect("default/gear: 1 of 3 red pieces are made")
	c.delete(widgetsResource, "default", "gear")
	p.expect("default/gear is cancelled")
	return p.interrupt()
}
