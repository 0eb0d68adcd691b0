package dedup

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func encodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// widgetTemplate returns a custom resource that runs a container of a workload, as its
// operator and the one who applied it leave it, with marks where each is different.
func (c *corpus) widgetTemplate(w *workload) string {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.deployment(w))
	if err != nil {
		panic(err)
	}
	meta := object["metadata"].(map[string]any)
	meta["name"], meta["uid"], meta["resourceVersion"], meta["creationTimestamp"] = w.name+"-$NAME", "$UID", "$VERSION", "$CREATED"
	meta["managedFields"].([]any)[0].(map[string]any)["time"] = "$CREATED"
	meta["ownerReferences"] = []any{map[string]any{
		"apiVersion": "example.com/v1", "kind": "WidgetSet", "name": w.name, "uid": string(w.owner), "controller": true, "blockOwnerDeletion": true,
	}}
	spec := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	spec["containers"] = spec["containers"].([]any)[:1]
	delete(spec, "volumes")
	condition := func(kind, reason string) any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "message": reason + " as asked for", "lastTransitionTime": "$READY", "observedGeneration": int64(3)}
	}
	return string(encodeJSON(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta,
		"spec": map[string]any{
			"template": spec, "replicas": int64(c.replicas), "ratio": 0.75, "selector": w.labels, "weights": []any{int64(100), int64(2000), 1.5},
		},
		"status": map[string]any{
			"phase": "Ready", "address": "$ADDRESS", "observedGeneration": int64(3),
			"conditions": []any{condition("Ready", "AllReady"), condition("Synced", "Reconciled")},
		},
	}))
}

// widget returns a custom resource of a template.
func (c *corpus) widget(template string) []byte {
	moment := func() string { return c.moment().UTC().Format("2006-01-02T15:04:05Z") }
	return []byte(strings.NewReplacer("$NAME", c.text(5), "$UID", string(c.uid()), "$VERSION", c.nextVersion(),
		"$CREATED", moment(), "$READY", moment(), "$ADDRESS", c.ip()).Replace(template))
}

// widgets returns the custom resources of so many workloads, those of a workload one
// after the other.
func (c *corpus) widgets(workloads int) [][]byte {
	var all [][]byte
	for i := range workloads {
		template := c.widgetTemplate(c.workload(i))
		for range c.replicas {
			all = append(all, c.widget(template))
		}
	}
	return all
}

// scrambledWidget returns a custom resource that has nothing in common with any other,
// but for the names of its fields.
func (c *corpus) scrambledWidget() []byte {
	var scramble func(v any) any
	scramble = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key := range v {
				v[key] = scramble(v[key])
			}
		case []any:
			for i := range v {
				v[i] = scramble(v[i])
			}
		case string:
			return c.text(max(len(v), 6))
		case float64:
			return c.random.Int64()
		}
		return v
	}
	var object map[string]any
	if err := json.Unmarshal(c.widget(c.widgetTemplate(c.workload(c.random.IntN(1000)))), &object); err != nil {
		panic(err)
	}
	scramble(object)
	object["apiVersion"], object["kind"] = "example.com/v1", "Widget"
	meta := object["metadata"].(map[string]any)
	meta["labels"] = map[string]any{"name": c.text(12), "id": fmt.Sprint(c.random.Uint64())}
	meta["managedFields"] = []any{map[string]any{"manager": c.text(9), "time": metav1.Now().Format("2006")}}
	return encodeJSON(object)
}
