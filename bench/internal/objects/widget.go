package objects

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Widget returns an object of a custom resource, of about 3 KB in JSON: widget number%40
// of workload number/40. As operators' objects do, those of a workload have the greater
// part of their spec in common; names, addresses, times and counts are their own. It
// panics if the JSON cannot be decoded.
func Widget(number int) *unstructured.Unstructured {
	w := workloadOf(number / Replicas)
	r := randomOf("widget", number)
	created := r.time()
	name := fmt.Sprintf("%s-%s%d", w.name, r.suffix(5), number%Replicas)
	content := map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{
			"namespace": w.namespace, "name": name, "uid": r.uid(), "resourceVersion": Version(number),
			"generation": 1 + r.IntN(20), "creationTimestamp": created, "labels": w.labels(),
			"annotations": map[string]string{"shop.example.com/revision": w.hash,
				"shop.example.com/policy": `{"retain":"` + w.hex(60) + `"}`},
			"finalizers": []string{"shop.example.com/protection"},
			"ownerReferences": []metav1.OwnerReference{{
				APIVersion: "shop.example.com/v1", Kind: "WidgetSet", Name: w.name, UID: w.set,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
			"managedFields": []metav1.ManagedFieldsEntry{
				managed("shop-operator", "", created, widgetSpecFields),
				managed("shop-operator", "status", after(created, 9), widgetStatusFields),
			},
		},
		"spec":   w.widgetSpec(name, r.IntN(50)),
		"status": widgetStatus(r, number, created),
	}
	raw, err := json.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("objects: widget %d: %v", number, err))
	}
	widget := &unstructured.Unstructured{}
	if err := widget.UnmarshalJSON(raw); err != nil {
		panic(fmt.Sprintf("objects: widget %d: %v", number, err))
	}
	return widget
}

func (w workload) widgetSpec(name string, shards int) map[string]any {
	return map[string]any{
		"class": "standard", "paused": false, "shards": shards, "host": name + ".shop.example.com",
		"image": map[string]any{"repository": w.image, "tag": "v1.27." + fmt.Sprint(w.number%10),
			"pullPolicy": "IfNotPresent"},
		"storage": map[string]any{"size": "20Gi", "className": "fast", "retain": true,
			"accessModes": []string{"ReadWriteOnce"}},
		"backup": map[string]any{"schedule": "17 3 * * *", "keep": 14,
			"bucket": "backups-" + w.namespace, "ratio": 0.25},
		"selector": map[string]any{"matchLabels": map[string]string{"app.kubernetes.io/name": w.name}},
		"resources": map[string]any{
			"requests": map[string]string{"cpu": "250m", "memory": "512Mi"},
			"limits":   map[string]string{"cpu": "1", "memory": "1Gi"},
		},
		"parameters": []any{
			map[string]any{"name": "max_connections", "value": "200"},
			map[string]any{"name": "shared_buffers", "value": "128MB"},
			map[string]any{"name": "log_min_duration", "value": "250ms"},
			map[string]any{"name": "database", "value": w.name},
		},
	}
}

func widgetStatus(r random, number int, created metav1.Time) map[string]any {
	var conditions []metav1.Condition
	for i, kind := range []string{"Available", "Progressing", "Degraded"} {
		conditions = append(conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "AsExpected",
			Message:            "all is as the specification says",
			LastTransitionTime: after(created, 5*i), ObservedGeneration: int64(number % 7),
		})
	}
	return map[string]any{
		"phase": "Ready", "observedGeneration": number % 7, "endpoint": ip(number) + ":5432",
		"conditions": conditions,
		"replicas": []any{
			map[string]any{"name": "primary", "ready": true,
				"node": fmt.Sprintf("node-%d.eu-west-1.compute.internal", r.IntN(1000))},
			map[string]any{"name": "standby", "ready": true,
				"node": fmt.Sprintf("node-%d.eu-west-1.compute.internal", r.IntN(1000))},
		},
	}
}
