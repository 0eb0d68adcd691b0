package apisim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    - {name: Made, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields:
    - jsonPath: .spec.colour
  - name: v1alpha1
    served: true
    storage: false
`

var (
	widgetsV1      = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	widgetsV1alpha = schema.GroupVersionResource{Group: "example.com", Version: "v1alpha1", Resource: "widgets"}
)

// fromYAML reads an object, and changes it.
func (b *bench) fromYAML(text string, changes ...func(u *unstructured.Unstructured)) *unstructured.Unstructured {
	b.Helper()
	u := &unstructured.Unstructured{}
	b.must(yaml.Unmarshal([]byte(text), &u.Object))
	for _, change := range changes {
		change(u)
	}
	return u
}

func (b *bench) dynamic() dynamic.Interface {
	b.Helper()
	client, err := dynamic.NewForConfig(config(b.server, ""))
	b.must(err)
	return client
}

func (b *bench) define(changes ...func(u *unstructured.Unstructured)) *unstructured.Unstructured {
	b.Helper()
	made, err := b.dynamic().Resource(definitions).Create(b.ctx, b.fromYAML(widgetDefinition, changes...), metav1.CreateOptions{})
	b.must(err)
	return made
}

func widget(version, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/" + version, "kind": "Widget", "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"size": int64(1)},
	}}
}

func condition(u *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

func TestDefinitionIsServedAtOnce(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		made := b.define()
		if condition(made, "Established") != "True" || condition(made, "NamesAccepted") != "True" {
			b.Errorf("the status is %v", made.Object["status"])
		}
		accepted, _, _ := unstructured.NestedString(made.Object, "status", "acceptedNames", "singular")
		stored, _, _ := unstructured.NestedStringSlice(made.Object, "status", "storedVersions")
		if accepted != "widget" || fmt.Sprint(stored) != "[v1]" {
			b.Errorf("accepted %q, stored %v", accepted, stored)
		}
		inV1 := b.dynamic().Resource(widgetsV1).Namespace("default")
		b.done(inV1.Create(b.ctx, widget("v1", "a"), metav1.CreateOptions{}))
		if _, err := inV1.Create(b.ctx, widget("v1alpha1", "b"), metav1.CreateOptions{}); !apierrors.IsBadRequest(err) {
			b.Errorf("a create in another version than the path's: %v", err)
		}
		if err := b.server.Register(Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget"}); err == nil {
			b.Error("a defined resource was registered too")
		}
	})
}

func TestVersionsOfADefinitionShareTheirObjects(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.define()
		inV1, inAlpha := b.dynamic().Resource(widgetsV1).Namespace("default"), b.dynamic().Resource(widgetsV1alpha).Namespace("default")
		made, err := inV1.Create(b.ctx, widget("v1", "a"), metav1.CreateOptions{})
		b.must(err)
		one, err := inV1.Watch(b.ctx, at(made.GetResourceVersion()))
		b.must(err)
		alpha, err := inAlpha.Watch(b.ctx, at(made.GetResourceVersion()))
		b.must(err)
		got, err := inAlpha.Get(b.ctx, "a", metav1.GetOptions{})
		if err != nil || got.GetAPIVersion() != "example.com/v1alpha1" || got.GetUID() != made.GetUID() {
			b.Fatalf("in the other version: %v, %v", got, err)
		}
		same, err := inAlpha.Update(b.ctx, got, metav1.UpdateOptions{})
		if err != nil || same.GetResourceVersion() != made.GetResourceVersion() {
			b.Errorf("an update in the other version that changes nothing: %v, %v", same, err)
		}
		got.SetLabels(map[string]string{"a": "b"})
		if got, err = inAlpha.Update(b.ctx, got, metav1.UpdateOptions{}); err != nil || got.GetAPIVersion() != "example.com/v1alpha1" {
			b.Errorf("updated %v, %v", got, err)
		}
		patched, err := inAlpha.Patch(b.ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":2}}`), metav1.PatchOptions{})
		if err != nil || patched.GetAPIVersion() != "example.com/v1alpha1" {
			b.Errorf("patched %v, %v", patched, err)
		}
		for version, list := range map[string]dynamic.ResourceInterface{"v1": inV1, "v1alpha1": inAlpha} {
			all, err := list.List(b.ctx, metav1.ListOptions{})
			if err != nil || len(all.Items) != 1 || all.Items[0].GetAPIVersion() != "example.com/"+version || all.GetAPIVersion() != "example.com/"+version {
				b.Errorf("listed in %s: %v, %v", version, all, err)
			}
		}
		for version, w := range map[string]apiwatch.Interface{"v1": one, "v1alpha1": alpha} {
			b.want("events in "+version, b.collect(w)(), "MODIFIED a@"+got.GetResourceVersion(), "MODIFIED a@"+patched.GetResourceVersion())
		}
		rest, err := inAlpha.Watch(b.ctx, at(got.GetResourceVersion()))
		b.must(err)
		defer rest.Stop()
		if e := <-rest.ResultChan(); e.Object.(*unstructured.Unstructured).GetAPIVersion() != "example.com/v1alpha1" {
			b.Errorf("an event in the other version is %v", e.Object)
		}
	})
}

func TestColumnsAndFieldsOfADefinition(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.define()
		widgets := b.dynamic().Resource(widgetsV1).Namespace("default")
		for name, colour := range map[string]string{"a": "red", "b": "blue"} {
			w := widget("v1", name)
			w.Object["spec"] = map[string]any{"size": int64(3), "colour": colour}
			b.done(widgets.Create(b.ctx, w, metav1.CreateOptions{}))
		}
		list, err := widgets.List(b.ctx, metav1.ListOptions{FieldSelector: "spec.colour!=red"})
		if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "b" {
			b.Errorf("selected %v, %v", list, err)
		}
		if _, err := widgets.List(b.ctx, metav1.ListOptions{FieldSelector: "spec.size=3"}); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field label not supported: spec.size") {
			b.Errorf("selected by another field: %v", err)
		}
		rows := b.rows("/apis/example.com/v1/namespaces/default/widgets?fieldSelector=spec.colour%3Dred")
		b.want("table", rows, "Name Size Colour/1 Made", "a 3 red 0s")
		rows = b.rows("/apis/example.com/v1alpha1/namespaces/default/widgets/a")
		b.want("table of a version without columns", rows, "Name Age", "a 0s")
		rows = b.rows("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
		b.want("table of definitions", rows, "Name Created At", "widgets.example.com 2000-01-01T00:00:00Z")
	})
}

func TestDefinitionMayChange(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		made := b.define()
		widgets := b.dynamic().Resource(widgetsV1alpha).Namespace("default")
		b.done(widgets.Create(b.ctx, widget("v1alpha1", "a"), metav1.CreateOptions{}))
		w, err := widgets.Watch(b.ctx, metav1.ListOptions{})
		b.must(err)
		events := b.collect(w)
		if got := events(); len(got) != 1 {
			b.Fatalf("events %q", got)
		}
		all := b.dynamic().Resource(definitions)
		labelled, err := all.Patch(b.ctx, made.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		if err != nil || labelled.GetGeneration() != 1 {
			b.Fatalf("%v, %v", labelled, err)
		}
		b.want("events after a label", events())
		versions := `{"spec":{"versions":[{"name":"v1","served":true,"storage":false},{"name":"v2","served":true,"storage":true}]}}`
		changed, err := all.Patch(b.ctx, made.GetName(), types.MergePatchType, []byte(versions), metav1.PatchOptions{})
		if err != nil || changed.GetGeneration() != 2 {
			b.Fatalf("%v, %v", changed, err)
		}
		stored, _, _ := unstructured.NestedStringSlice(changed.Object, "status", "storedVersions")
		if fmt.Sprint(stored) != "[v1 v2]" {
			b.Errorf("stored %v", stored)
		}
		b.want("events of a version that is not served any more", events(), "END")
		if _, err := widgets.Get(b.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("a version that is not served: %v", err)
		}
		v2 := schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}
		if got, err := b.dynamic().Resource(v2).Namespace("default").Get(b.ctx, "a", metav1.GetOptions{}); err != nil || got.GetAPIVersion() != "example.com/v2" {
			b.Errorf("the object in the new version: %v, %v", got, err)
		}
		if _, err := b.dynamic().Resource(v2).Namespace("default").UpdateStatus(b.ctx, widget("v2", "a"), metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("a status that is not served any more: %v", err)
		}
	})
}

func TestDeletedDefinitionTakesItsObjects(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		made := b.define()
		widgets := b.dynamic().Resource(widgetsV1).Namespace("default")
		held := widget("v1", "held")
		held.SetFinalizers([]string{"example.com/one"})
		for _, w := range []*unstructured.Unstructured{widget("v1", "a"), held} {
			b.done(widgets.Create(b.ctx, w, metav1.CreateOptions{}))
		}
		w, err := widgets.Watch(b.ctx, at(b.version()))
		b.must(err)
		events := b.collect(w)
		synctest.Wait()
		all := b.dynamic().Resource(definitions)
		for range 2 {
			b.must(all.Delete(b.ctx, made.GetName(), metav1.DeleteOptions{}))
		}
		left, err := all.Get(b.ctx, made.GetName(), metav1.GetOptions{})
		if err != nil || left.GetDeletionTimestamp() == nil || fmt.Sprint(left.GetFinalizers()) != "[customresourcecleanup.apiextensions.k8s.io]" || condition(left, "Terminating") != "True" {
			b.Fatalf("the definition is %v, %v", left, err)
		}
		if got := events(); len(got) != 2 || !strings.HasPrefix(got[0], "DELETED a@") || !strings.HasPrefix(got[1], "MODIFIED held@") {
			b.Errorf("events %q", got)
		}
		if _, err := widgets.Create(b.ctx, widget("v1", "late"), metav1.CreateOptions{}); !apierrors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), "terminating") {
			b.Errorf("a create meanwhile: %v", err)
		}
		b.done(widgets.Patch(b.ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
		if got := events(); len(got) != 2 || !strings.HasPrefix(got[0], "DELETED held@") || got[1] != "END" {
			b.Errorf("events %q", got)
		}
		if _, err := all.Get(b.ctx, made.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("the definition: %v", err)
		}
		if _, err := widgets.List(b.ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("the resource: %v", err)
		}
		b.define()
		if list, err := widgets.List(b.ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
			b.Errorf("defined again: %v, %v", list, err)
		}
	})
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		set := func(value any, path ...string) func(u *unstructured.Unstructured) {
			return func(u *unstructured.Unstructured) {
				b.must(unstructured.SetNestedField(u.Object, value, path...))
			}
		}
		for name, test := range map[string]struct {
			change func(u *unstructured.Unstructured)
			says   string
		}{
			"name":        {set("x.example.com", "metadata", "name"), `spec.names.plural+"."+spec.group`},
			"scope":       {set("Elsewhere", "spec", "scope"), "spec.scope"},
			"kind":        {set("", "spec", "names", "kind"), "spec.names.kind: Required"},
			"no versions": {set([]any{}, "spec", "versions"), "exactly one version"},
			"form":        {set("x", "spec", "names"), "cannot be handled as a CustomResourceDefinition"},
		} {
			given := b.fromYAML(widgetDefinition, test.change)
			_, err := b.dynamic().Resource(definitions).Create(b.ctx, given, metav1.CreateOptions{})
			if err == nil || !strings.Contains(err.Error(), test.says) || !(apierrors.IsInvalid(err) || name == "form" && apierrors.IsBadRequest(err)) {
				b.Errorf("%s: %v, want %s", name, err, test.says)
			}
		}
	})
}

func TestScale(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet"} {
			b.seed(b.fromYAML("{apiVersion: apps/v1, metadata: {name: a, namespace: default}, " +
				"spec: {selector: {matchLabels: {app: a}}}, status: {replicas: 2}, kind: " + kind + "}"))
			path := "/apis/apps/v1/namespaces/default/" + strings.ToLower(kind) + "s/a"
			const scale = `{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"a"%s},` +
				`"spec":{"replicas":4}}`
			b.ask("",
				ask{"GET " + path + "/scale", "", 200,
					`"spec":{"replicas":1},"status":{"replicas":2,"selector":"app=a"}`},
				ask{"PUT " + path + "/scale", fmt.Sprintf(scale, ""), 200, `"spec":{"replicas":4}`},
				ask{"PUT " + path + "/scale", fmt.Sprintf(scale, `,"resourceVersion":"1"`), 409, "modified"},
				ask{"GET " + path, "", 200, `"generation":2`},
				ask{"GET " + path, "", 200, `"spec":{"replicas":4`})
		}
		b.define()
		b.done(b.dynamic().Resource(widgetsV1).Namespace("default").Create(b.ctx, widget("v1", "a"), metav1.CreateOptions{}))
		const path = "/apis/example.com/v1/namespaces/default/widgets/a/scale"
		b.ask("application/merge-patch+json",
			ask{"GET " + path, "", 200, `"kind":"Scale","apiVersion":"autoscaling/v1"`},
			ask{"PATCH " + path, `{"spec":{"replicas":5}}`, 200, `"spec":{"replicas":5}`},
			ask{"PATCH " + path, `{"spec":{"replicas":"x"}}`, 422, "patch"},
			ask{"DELETE " + path, "", 405, "does not allow"},
			ask{"GET /api/v1/namespaces/default/configmaps/a/scale", "", 404, ""})
		b.ask("", ask{"PUT " + path,
			`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"b"}}`, 400,
			"does not match the name"})
	})
}
