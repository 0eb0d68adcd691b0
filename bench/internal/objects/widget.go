package objects

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Widget returns an object of a custom resource, of about 3 KB in JSON: widget number%40
// of workload number/40. As operators' objects do, those of a workload have the greater
// part of their spec in common; names, addresses, times and counts are their own.
func Widget(number int) *unstructured.Unstructured {
	w := workloadOf(number / Replicas)
	r := randomOf("widget", number)
	created := r.time()
	widget := template().widget.DeepCopy()
	widget.SetNamespace(w.namespace)
	widget.SetName(fmt.Sprintf("%s-%s%d", w.name, r.suffix(5), number%Replicas))
	widget.SetUID(r.uid())
	widget.SetResourceVersion(Version(number))
	widget.SetGeneration(int64(1 + r.IntN(20)))
	widget.SetCreationTimestamp(created)
	widget.SetLabels(w.labels())
	widget.SetAnnotations(map[string]string{
		"shop.example.com/revision": w.hash,
		"shop.example.com/policy":   `{"retain":"` + w.hex(60) + `"}`,
	})
	owner := w.set
	owner.APIVersion, owner.Kind, owner.Name = "shop.example.com/v1", "WidgetSet", w.name
	widget.SetOwnerReferences([]metav1.OwnerReference{owner})
	widget.SetManagedFields(managed(widget.GetManagedFields(), created, 9))

	part := func(name string) map[string]any { return widget.Object[name].(map[string]any) }
	spec, status := part("spec"), part("status")
	spec["shards"], spec["host"] = int64(r.IntN(50)), widget.GetName()+".shop.example.com"
	spec["image"].(map[string]any)["repository"] = w.image
	spec["backup"].(map[string]any)["bucket"] = "backups-" + w.namespace
	spec["selector"].(map[string]any)["matchLabels"] = map[string]any{
		"app.kubernetes.io/name": w.name,
	}
	spec["parameters"].([]any)[0].(map[string]any)["value"] = w.name
	status["observedGeneration"], status["endpoint"] = int64(number%7), ip(number)+":5432"
	for i, c := range status["conditions"].([]any) {
		condition := c.(map[string]any)
		condition["lastTransitionTime"] = after(created, 5*i).UTC().Format(time.RFC3339)
		condition["observedGeneration"] = int64(number % 7)
	}
	for _, replica := range status["replicas"].([]any) {
		replica.(map[string]any)["node"] = Node(r.IntN(1000))
	}
	return widget
}
