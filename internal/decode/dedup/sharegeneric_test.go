package dedup

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	goruntime "runtime"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// widget returns the n-th custom resource of a kind, as JSON decodes to it.
func widget(t *testing.T, n int) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"widget-%d","uid":"u%d","labels":{"app":"web"}},
		"spec":{"size":3,"ratio":0.5,"on":true,"none":null,"empty":{},"emptyList":[],"steps":[{"name":"one","args":["a","b"]},{"name":"two"}]},
		"status":{"observed":%d,"conditions":[{"type":"Ready","status":"True","message":"all is well with this widget"}]}}`, n, n, n)
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestShareTrees shares custom resources without a Go type: equal parts are one, the
// given objects stay as they are, and nothing of them is in another object.
func TestShareTrees(t *testing.T) {
	s := NewSharer(new(Table), SharerOptions{})
	var last, before *unstructured.Unstructured
	given := map[unsafe.Pointer]reflect.Type{}
	var kept []*unstructured.Unstructured // so that no address is used again
	for n := range 8 {
		u := widget(t, n)
		own := memories(reflect.ValueOf(u.Object), nil)
		before, last = last, shareOne(t, s, u).(*unstructured.Unstructured)
		for at := range memories(reflect.ValueOf(last.Object), nil) {
			if given[at] != nil {
				t.Fatal("a part of an object that was given is in another object")
			}
		}
		maps.Copy(given, own)
		kept = append(kept, u, last)
		keenSharer(t, s, reflect.TypeFor[unstructured.Unstructured]())
	}
	goruntime.KeepAlive(kept)
	part := func(u *unstructured.Unstructured, fields ...string) uintptr {
		x, ok, err := unstructured.NestedFieldNoCopy(u.Object, fields...)
		if !ok || err != nil {
			t.Fatalf("no %v: %v", fields, err)
		}
		return reflect.ValueOf(x).Pointer()
	}
	for _, fields := range [][]string{{"spec"}, {"spec", "steps"}, {"metadata", "labels"}, {"status", "conditions"}} {
		if part(last, fields...) != part(before, fields...) {
			t.Errorf("%v of two objects is there twice", fields)
		}
	}
	if part(last, "metadata") == part(before, "metadata") {
		t.Error("two objects have different metadata, which are one")
	}
	if size := last.Object["spec"].(map[string]any)["size"]; size != any(int64(3)) {
		t.Errorf("a number has become a %T", size)
	}
}

// TestShareTreesByValue: which values of trees are the same.
func TestShareTreesByValue(t *testing.T) {
	nan := math.NaN()
	values := []any{
		nil, "", "1", int64(1), 1.0, true, false, int64(0), 0.0, math.Copysign(0, -1), math.Float64frombits(math.Float64bits(nan) ^ 1),
		map[string]any(nil), map[string]any{}, map[string]any{"a": nil}, map[string]any{"b": nil}, []any(nil), []any{}, []any{nil}, []any{"1"}, []any{int64(1)},
	}
	for i, a := range values {
		for j, b := range values {
			if equalGeneric(a, b) != (i == j) {
				t.Errorf("%#v and %#v: %v", a, b, i != j)
			}
		}
	}
	for _, other := range []any{1, json.Number("1"), []string{"a"}} {
		if equalGeneric(other, other) {
			t.Errorf("a %T is not what JSON decodes to, and was compared", other)
		}
	}
}

// TestShareKinds: objects that are, or may be, Secrets are left alone though their Go type
// does not say so.
func TestShareKinds(t *testing.T) {
	kind := func(apiVersion, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "data": map[string]any{"a": "b"}}}
	}
	metadata := func(apiVersion, kind string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
	}
	for _, tt := range []struct {
		obj       runtime.Object
		noSecrets bool
		shared    bool
	}{
		{&ownSecret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}, true, false},
		{&ownSecret{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Secret"}}, false, true},
		{&ownSecret{}, false, false},
		{&ownSecret{}, true, true},
		{&ownMetadata{}, false, false},
		{&ownMaps{}, false, false},
		{&ownWidget{}, false, true},
		{&ownWidget{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}, true, false},
		{&corev1.ConfigMap{}, false, true},
		{kind("v1", "Pod"), false, true},
		{kind("v1", "Secret"), false, false},
		{kind("v1", "Secret"), true, false},
		{kind("", ""), false, false},
		{kind("example.com/v1", "Secret"), false, true},
		{metadata("v1", "Pod"), false, true},
		{metadata("v1", "Secret"), true, false},
		{metadata("meta.k8s.io/v1", "PartialObjectMetadata"), false, false},
		{metadata("meta.k8s.io/v1", "PartialObjectMetadata"), true, true},
		{metadata("", ""), false, false},
	} {
		s := NewSharer(new(Table), SharerOptions{NoSecrets: tt.noSecrets})
		s.Share(tt.obj)
		if stats := s.Stats(); (stats.Shared == 1) != tt.shared || (stats.WhyAlone == nil) != tt.shared {
			t.Errorf("%v, no Secrets is %v: %+v", tt.obj.GetObjectKind().GroupVersionKind(), tt.noSecrets, stats)
		}
	}
}

// ownSecret is a struct that a program may decode Secrets into; so is ownMetadata, and ownMaps,
// but not ownWidget.
type ownSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string][]byte `json:"data"`
}

type ownMetadata struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Type              string `json:"type"`
}

type ownMaps struct{ unstructured.Unstructured }

type ownWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]string `json:"spec"`
}

func (o *ownSecret) DeepCopyObject() runtime.Object   { return o }
func (o *ownMetadata) DeepCopyObject() runtime.Object { return o }
func (o *ownWidget) DeepCopyObject() runtime.Object   { return o }

// TestIsSecret: the one rule, which every other place asks.
func TestIsSecret(t *testing.T) {
	for _, tt := range []struct {
		group, resource, kind string
		want                  bool
	}{
		{"", "secrets", "Secret", true},
		{"", "secrets", "", true},
		{"", "secrets", "Mine", true},
		{"", "", "Secret", true},
		{"", "hidden", "Secret", true},
		{"", "", "SecretList", true},
		{"", "", "", false},
		{"", "configmaps", "ConfigMap", false},
		{"example.com", "secrets", "Secret", false},
		{"", "", "SealedSecret", false},
	} {
		if got := IsSecret(tt.group, tt.resource, tt.kind); got != tt.want {
			t.Errorf("group %q, resource %q, kind %q: %t", tt.group, tt.resource, tt.kind, got)
		}
	}
}
