package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Database is the custom type of a fleet: some applications have an object of it.
var Database = schema.GroupVersionKind{Group: "fleet.example", Version: "v1", Kind: "Database"}

// Databases is its resource.
var Databases = Database.GroupVersion().WithResource("databases")

// definition returns the CustomResourceDefinition of databases.
func definition() *unstructured.Unstructured {
	column := func(name, kind, path string) any {
		return map[string]any{"name": name, "type": kind, "jsonPath": path}
	}
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": Databases.Resource + "." + Databases.Group},
		"spec": map[string]any{
			"group": Database.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": Databases.Resource, "singular": "database", "kind": Database.Kind, "shortNames": []any{"db"}, "categories": []any{"all"}},
			"versions": []any{map[string]any{
				"name": Database.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"additionalPrinterColumns": []any{
					column("Engine", "string", ".spec.engine"), column("Version", "string", ".spec.version"),
					column("Phase", "string", ".status.phase"), column("Primary", "string", ".status.primary"),
					column("Age", "date", ".metadata.creationTimestamp"),
				},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": open, "status": open}}},
			}},
		},
	}}
}

// majors are the versions that a database goes through.
var majors = []string{"16.1", "16.2", "16.3", "17.0", "17.1", "17.2"}

func newDatabase(rng *rand.Rand, namespace, name string, labels map[string]string, now time.Time) *unstructured.Unstructured {
	given := make(map[string]any, len(labels))
	for key, value := range labels {
		given[key] = value
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": given},
		"spec": map[string]any{
			"engine": "postgres", "version": majors[rng.IntN(len(majors)/2)], "instances": int64(2 + rng.IntN(2)),
			"storage": fmt.Sprintf("%dGi", 10*(1+rng.IntN(20))),
		},
	}}
	u.SetGroupVersionKind(Database)
	setDatabase(u, "Ready", now)
	setPrimary(u, 0)
	return u
}

// setDatabase sets the phase of a database, and the condition that goes with it.
func setDatabase(u *unstructured.Unstructured, phase string, now time.Time) {
	ready := "False"
	if phase == "Ready" {
		ready = "True"
	}
	setField(u, phase, "status", "phase")
	setField(u, []any{map[string]any{"type": "Ready", "status": ready, "reason": phase, "lastTransitionTime": now.UTC().Format(time.RFC3339)}}, "status", "conditions")
}

// setPrimary names the instance that takes writes.
func setPrimary(u *unstructured.Unstructured, instance int64) {
	setField(u, fmt.Sprintf("%s-%d", u.GetName(), instance), "status", "primary")
}

// setField sets a field. The parents are maps: the fleet has made them, or somebody who
// made them something else is not followed there.
func setField(u *unstructured.Unstructured, value any, path ...string) {
	unstructured.SetNestedField(u.Object, value, path...) //nolint:errcheck // as said above
}

// tended returns what an operator does to the database of an application: a backup, an
// upgrade, or another primary.
func (f *Fleet) tended(a *app) []step {
	edit := func(change func(u *unstructured.Unstructured, now time.Time)) step {
		return func(ctx context.Context, now time.Time) error {
			if a.database == nil {
				return nil
			}
			return update(ctx, f, &a.database, func(u *unstructured.Unstructured) { change(u, now) })
		}
	}
	phase := func(name string) step {
		return edit(func(u *unstructured.Unstructured, now time.Time) { setDatabase(u, name, now) })
	}
	instance := f.rng.Int64N(3)
	switch f.rng.IntN(3) {
	case 0:
		return []step{phase("BackingUp"), edit(func(u *unstructured.Unstructured, now time.Time) {
			setDatabase(u, "Ready", now)
			setField(u, now.UTC().Format(time.RFC3339), "status", "lastBackup")
		})}
	case 1:
		next := majors[f.rng.IntN(len(majors))]
		return []step{
			edit(func(u *unstructured.Unstructured, _ time.Time) { setField(u, next, "spec", "version") }),
			phase("Upgrading"), phase("Ready"),
		}
	default:
		return []step{phase("FailingOver"), edit(func(u *unstructured.Unstructured, now time.Time) {
			setDatabase(u, "Ready", now)
			setPrimary(u, instance)
		})}
	}
}
