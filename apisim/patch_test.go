package apisim

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (b *bench) deployment(name string, containers ...string) *appsv1.Deployment {
	b.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for _, name := range containers {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: name, Image: name + ":1"})
	}
	made, err := Create(b.ctx, b.server, d)
	b.must(err)
	return made
}

func images(d *appsv1.Deployment) string {
	var list []string
	for _, c := range d.Spec.Template.Spec.Containers {
		list = append(list, c.Image)
	}
	return strings.Join(list, " ")
}

func TestPatchesOfEachKind(t *testing.T) {
	tests := map[string]struct {
		kind  types.PatchType
		patch string
		want  string
	}{
		"JSON":            {types.JSONPatchType, `[{"op":"test","path":"/spec/template/spec/containers/1/name","value":"b"},{"op":"replace","path":"/spec/template/spec/containers/1/image","value":"b:2"}]`, "a:1 b:2"},
		"merge":           {types.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b:2"}]}}}}`, "b:2"},
		"strategic":       {types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b:2"}]}}}}`, "a:1 b:2"},
		"strategic order": {types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"b","image":"b:2"}]}}}}`, "b:2 a:1"},
		"strategic away":  {types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}}}`, "b:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				made := b.deployment("web", "a", "b")
				got, err := b.typed.AppsV1().Deployments("default").Patch(b.ctx, "web", test.kind, []byte(test.patch), metav1.PatchOptions{})
				b.must(err)
				if images(got) != test.want {
					b.Errorf("images are %q, want %q", images(got), test.want)
				}
				if got.Generation != 2 || got.ResourceVersion == made.ResourceVersion || got.UID != made.UID {
					b.Errorf("generation %d, version %s after %s, UID %s after %s", got.Generation, got.ResourceVersion, made.ResourceVersion, got.UID, made.UID)
				}
				again, err := b.typed.AppsV1().Deployments("default").Patch(b.ctx, "web", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
				if err != nil || again.ResourceVersion != got.ResourceVersion {
					b.Errorf("a patch of nothing made version %s of %s, %v", again.ResourceVersion, got.ResourceVersion, err)
				}
			})
		})
	}
}

func TestPatchesThatAreRefused(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		made := b.deployment("web", "a")
		const path = "/apis/apps/v1/namespaces/default/deployments/"
		tests := map[string]struct {
			kind, name, patch string
			code              int
			reason            metav1.StatusReason
			says              string
		}{
			"missing object":   {"merge-patch+json", "nosuch", `{}`, 404, metav1.StatusReasonNotFound, `deployments.apps \"nosuch\" not found`},
			"unknown kind":     {"x-patch+json", "web", `{}`, 415, metav1.StatusReasonUnsupportedMediaType, "application/json-patch+json"},
			"not JSON":         {"merge-patch+json", "web", `{`, 400, metav1.StatusReasonBadRequest, "error decoding patch"},
			"no object":        {"merge-patch+json", "web", `[]`, 400, metav1.StatusReasonBadRequest, "error decoding patch"},
			"no operations":    {"json-patch+json", "web", `{}`, 400, metav1.StatusReasonBadRequest, "error decoding patch"},
			"too many":         {"json-patch+json", "web", `[` + strings.Repeat(`{"op":"remove","path":"/x"},`, maxPatchOperations) + `{}]`, 413, metav1.StatusReasonRequestEntityTooLarge, "10000"},
			"failed test":      {"json-patch+json", "web", `[{"op":"test","path":"/metadata/name","value":"other"}]`, 422, metav1.StatusReasonInvalid, "the server rejected our request"},
			"missing path":     {"json-patch+json", "web", `[{"op":"replace","path":"/spec/nosuch/x","value":1}]`, 422, metav1.StatusReasonInvalid, "the server rejected our request"},
			"strategic type":   {"strategic-merge-patch+json", "web", `{"spec":{"template":{"spec":{"containers":5}}}}`, 422, metav1.StatusReasonInvalid, "patch"},
			"bad directive":    {"strategic-merge-patch+json", "web", `{"spec":{"$patch":"nosuch"}}`, 422, metav1.StatusReasonInvalid, "the server rejected our request"},
			"wrong type":       {"merge-patch+json", "web", `{"spec":{"replicas":"three"}}`, 422, metav1.StatusReasonInvalid, "patch: Invalid value"},
			"another name":     {"merge-patch+json", "web", `{"metadata":{"name":"other"}}`, 400, metav1.StatusReasonBadRequest, "does not match the name on the URL (web)"},
			"no name":          {"merge-patch+json", "web", `{"metadata":{"name":null}}`, 400, metav1.StatusReasonBadRequest, "name must be provided"},
			"namespace":        {"merge-patch+json", "web", `{"metadata":{"namespace":"other"}}`, 400, metav1.StatusReasonBadRequest, "does not match the namespace"},
			"UID":              {"merge-patch+json", "web", `{"metadata":{"uid":"other"}}`, 422, metav1.StatusReasonInvalid, "metadata.uid: Invalid value"},
			"another version":  {"merge-patch+json", "web", `{"metadata":{"resourceVersion":"1"}}`, 409, metav1.StatusReasonConflict, "has been modified"},
			"another kind":     {"merge-patch+json", "web", `{"kind":"Pod"}`, 422, metav1.StatusReasonInvalid, "cannot be handled"},
			"bad label":        {"merge-patch+json", "web", `{"metadata":{"labels":{"a b":"c"}}}`, 422, metav1.StatusReasonInvalid, "metadata.labels"},
			"deletion":         {"merge-patch+json", "web", `{"metadata":{"deletionTimestamp":"2000-01-01T00:00:00Z"}}`, 422, metav1.StatusReasonInvalid, "metadata.deletionTimestamp"},
			"unknown field":    {"merge-patch+json", "web?fieldValidation=Strict", `{"spec":{"replica":3}}`, 422, metav1.StatusReasonInvalid, `unknown field`},
			"bad parameter":    {"merge-patch+json", "web?fieldValidation=Lax", `{}`, 422, metav1.StatusReasonInvalid, "fieldValidation"},
			"no such resource": {"merge-patch+json", "web/scale/x", `{}`, 404, "", "404"},
		}
		for name, test := range tests {
			code, text := b.get("PATCH", path+test.name, test.patch, "Content-Type", "application/"+test.kind)
			if code != test.code || !strings.Contains(text, test.says) || !strings.Contains(text, string(test.reason)) {
				b.Errorf("%s: %d %s, want %d %s and that it says %q", name, code, text, test.code, test.reason, test.says)
			}
		}
		left, err := b.typed.AppsV1().Deployments("default").Get(b.ctx, "web", metav1.GetOptions{})
		if err != nil || left.ResourceVersion != made.ResourceVersion {
			b.Errorf("a refused patch left version %s of %s, %v", left.ResourceVersion, made.ResourceVersion, err)
		}
	})
}

func TestPatchesAtOnceAllCount(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		var patching sync.WaitGroup
		for i := range 20 {
			patching.Go(func() {
				patch := fmt.Appendf(nil, `{"data":{"k%d":"v"}}`, i)
				if _, err := b.typed.CoreV1().ConfigMaps("default").Patch(b.ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					b.Error(err)
				}
			})
		}
		patching.Wait()
		got, err := b.typed.CoreV1().ConfigMaps("default").Get(b.ctx, "a", metav1.GetOptions{})
		if err != nil || len(got.Data) != 20 {
			b.Errorf("%d of 20 patches are left, %v", len(got.Data), err)
		}
	})
}

func TestPatchOfACustomResource(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.register()
		const path = "/apis/example.com/v1/namespaces/default/widgets"
		b.ask("", ask{"POST " + path, `{"apiVersion":"example.com/v1","kind":"Widget",` +
			`"metadata":{"name":"a"},"spec":{"size":1,"parts":[1,2]}}`, 201, ""})
		b.ask("application/merge-patch+json",
			ask{"PATCH " + path + "/a", `{"spec":{"size":2,"parts":null}}`, 200, `"spec":{"size":2}`},
			ask{"PATCH " + path + "/a", `{"kind":null}`, 422, "is missing"})
		b.ask("application/json-patch+json", ask{"PATCH " + path + "/a",
			`[{"op":"add","path":"/spec/parts","value":[3]}]`, 200, `"parts":[3]`})
		b.ask("application/merge-patch+json", ask{"PATCH " + path + "/a/status",
			`{"spec":{"size":9},"metadata":{"labels":{"a":"b"}},"status":{"ready":true}}`, 200,
			`},"spec":{"parts":[3],"size":2},"status":{"ready":true}`})
		if code, text := b.get("GET", path+"/a", ""); code != 200 || strings.Contains(text, "labels") {
			b.Errorf("a write of the status has changed labels: %d %s", code, text)
		}
		b.ask("application/strategic-merge-patch+json",
			ask{"PATCH " + path + "/a", `{}`, 415, "merge-patch"},
			ask{"DELETE /apis/example.com/v1/widgets", "", 404, "could not find"})
	})
}
