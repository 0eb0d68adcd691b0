package apisim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// applyStep is an apply, or another patch, and the object that it leaves.
type applyStep struct {
	path, manager, body string // a manager with a "!" takes fields from others
	code                int
	says                string // in the answer, with "not " for a text that is not in it
	managers            string
}

func (b *bench) applySteps(steps []applyStep) {
	b.Helper()
	for i, step := range steps {
		manager, force := strings.CutSuffix(step.manager, "!")
		query := "?fieldManager=" + manager
		if force {
			query += "&force=true"
		}
		contentType := "application/apply-patch+yaml"
		if strings.HasPrefix(step.body, "{") {
			contentType = "application/merge-patch+json"
		}
		code, text := b.get("PATCH", step.path+query, step.body, "Content-Type", contentType)
		says, absent := strings.CutPrefix(step.says, "not ")
		if code != step.code || strings.Contains(text, says) == absent {
			b.Errorf("%d: %d %s, want %d and %q", i, code, text, step.code, step.says)
		}
		var obj metav1.PartialObjectMetadata
		b.decode(text, &obj)
		var managers []string
		for _, m := range obj.ManagedFields {
			managers = append(managers, strings.Trim(fmt.Sprint(m.Manager, "-", m.Operation, "-", m.Subresource), "-"))
		}
		slices.Sort(managers)
		if got := strings.Join(managers, " "); got != step.managers {
			b.Errorf("%d: the managers are %q, want %q", i, got, step.managers)
		}
	}
}

// TestAnApplyThatChangesNothing leaves the version and the times of the field managers as they are,
// as kube-apiserver does.
func TestAnApplyThatChangesNothing(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		const config = "/api/v1/namespaces/default/configmaps/x"
		apply := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: "
		version := func() string {
			b.Helper()
			stored, err := b.server.Get(b.Context(), configMaps, "default", "x")
			if err != nil {
				b.Fatal(err)
			}
			return stored.(*corev1.ConfigMap).ResourceVersion
		}
		b.applySteps([]applyStep{{config, "one", apply + `{a: "1"}`, 201, "", "one-Apply"}})
		first := version()
		time.Sleep(2 * time.Second)
		b.applySteps([]applyStep{{config, "one", apply + `{a: "1"}`, 200, "", "one-Apply"}})
		if again := version(); again != first {
			b.Errorf("the version was %s, and is %s", first, again)
		}
		b.applySteps([]applyStep{{config, "two", apply + `{a: "1"}`, 200, "", "one-Apply two-Apply"}})
		if other := version(); other == first {
			b.Errorf("another manager has applied it, and the version is %s", other)
		}
	})
}

// TestTimesOfFieldManagers: the stored object is the one that clients receive.
func TestTimesOfFieldManagers(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		time.Sleep(1500 * time.Millisecond)
		const config, body = "/api/v1/namespaces/default/configmaps/x", `{"data":{"a":"2"}}`
		apply := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: "
		b.applySteps([]applyStep{
			{config, "one", apply + `{a: "1"}`, 201, `"a":"1"`, "one-Apply"},
			{config, "one", apply + `{a: "1", b: "1"}`, 200, `"b":"1"`, "one-Apply"},
			{config, "two", body, 200, `"a":"2"`, "one-Apply two-Update"},
		})
		stored, err := b.server.Get(b.Context(), configMaps, "default", "x")
		if err != nil {
			b.Fatal(err)
		}
		for _, m := range stored.(*corev1.ConfigMap).ManagedFields {
			if m.Time.Nanosecond() != 0 {
				b.Errorf("the stored time of %s is %v", m.Manager, m.Time.Time)
			}
		}
	})
}

func TestServerSideApplyOfABuiltInType(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		const web = "/apis/apps/v1/namespaces/default/deployments/web"
		deployment := func(spec string) string {
			return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: " + spec
		}
		container := func(name, image string) string {
			return fmt.Sprintf("{template: {spec: {containers: [{name: %s, image: %s}]}}}", name, image)
		}
		created := applyStep{
			web, "one", deployment("{replicas: 2, paused: true}"), 201, `"replicas":2`, "one-Apply",
		}
		b.applySteps([]applyStep{created})
		before := b.version()
		created.code = 200
		b.applySteps([]applyStep{created})
		if after := b.version(); after != before {
			b.Errorf("an apply that changes nothing made version %s of %s", after, before)
		}
		both := "one-Apply two-Apply"
		all := both + " two-Update-status"
		b.applySteps([]applyStep{
			{web, "two", deployment("{replicas: 3}"), 409, `conflict with \"one\"`, ""},
			{web, "two!", deployment("{replicas: 3}"), 200, `"replicas":3`, both},
			{web, "one", deployment("{}"), 200, "not paused", both},
			{web, "one", deployment(container("a", "a:1")), 200, `"name":"a"`, both},
			{web, "two", deployment(container("b", "b:1")), 200, `"image":"a:1"`, both},
			{web, "two", deployment("{}"), 200, `not "b:1"`, both},
			{web, "two", deployment("{minReadySeconds: 5}"), 200, `"minReadySeconds":5`, both},
			{web + "/status", "two", `{"status":{"replicas":1}}`, 200, `"replicas":1`, all},
			{web, "three", `{"spec":{"minReadySeconds":6}}`, 200, `"minReadySeconds":6`,
				"one-Apply three-Update two-Update-status"},
			{web, "two", deployment("{minReadySeconds: 5}"), 409, `conflict with \"three\"`, ""},
			{web, "", deployment("{}"), 422, "fieldManager", ""},
			{web, "one", deployment("{replica: 3}"), 500, "field not declared in schema", ""},
			{web, "one", strings.Replace(deployment("{}"), "web", "x", 1), 400, "does not match", ""},
			{web + "/scale", "one", deployment("{}"), 415, "merge-patch", ""},
		})
	})
}

func TestServerSideApplyOfACustomType(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.define()
		const path = "/apis/example.com/%s/namespaces/default/widgets/%s"
		a, alpha := fmt.Sprintf(path, "v1", "a"), fmt.Sprintf(path, "v1alpha1", "a")
		widget := func(version, name, rest string) string {
			const text = "apiVersion: example.com/%s\nkind: Widget\nmetadata: {name: %s}\n%s"
			return fmt.Sprintf(text, version, name, rest)
		}
		b.applySteps([]applyStep{
			{a, "one", widget("v1", "a", "spec: {size: 1, colour: red}"), 201, `"size":1`, "one-Apply"},
			{a, "two", widget("v1", "a", "spec: {size: 2}"), 409, "conflict", ""},
			{alpha, "two", widget("v1alpha1", "a", "spec: {depth: 2}"), 200, `"colour":"red"`,
				"one-Apply two-Apply"},
			{a, "one", widget("v1", "a", "spec: {size: 1}"), 200, "not colour", "one-Apply two-Apply"},
			{a + "/status", "one", widget("v1", "a", "status: {ready: true}"), 200, `"ready":true`,
				"one-Apply one-Apply-status two-Apply"},
			{a, "one", widget("v1", "a", ""), 200, `"ready":true`, "one-Apply-status two-Apply"},
			{fmt.Sprintf(path, "v1", "b") + "/status", "one", widget("v1", "b", ""), 404, "NotFound", ""},
		})
		b.seed(b.fromYAML(widget("v1", "old", "spec: {size: 1}"), func(u *unstructured.Unstructured) {
			u.SetNamespace("default")
		}))
		old := fmt.Sprintf(path, "v1", "old")
		b.applySteps([]applyStep{
			{old, "one", `{"spec":{"size":2}}`, 200, `"size":2`, ""},
			{old, "one", widget("v1", "old", "spec: {size: 3}"), 409, "before-first-apply", ""},
			{old, "one!", widget("v1", "old", "spec: {size: 3}"), 200, `"size":3`,
				"before-first-apply-Update one-Apply"},
		})
	})
}
