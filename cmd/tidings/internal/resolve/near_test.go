package resolve

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"pods", "", 4}, {"", "pods", 4}, {"pods", "pods", 0},
		{"pods", "pod", 1}, {"deploymnets", "deployments", 1}, {"sevrice", "service", 1},
		{"kitten", "sitting", 3}, {"ca", "abc", 3}, {"größe", "grösse", 2},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetricAndBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.StringMatching(`[a-d]{0,8}`).Draw(t, "a")
		b := rapid.StringMatching(`[a-d]{0,8}`).Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) {
			t.Errorf("distance(%q, %q) = %d and the other way %d", a, b, d, distance(b, a))
		}
		if d > max(len(a), len(b)) || (d == 0) != (a == b) {
			t.Errorf("distance(%q, %q) = %d", a, b, d)
		}
	})
}

func TestNear(t *testing.T) {
	follow := metav1.Verbs{"get", "list", "watch"}
	all := candidates([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", SingularName: "pod", Kind: "Pod", ShortNames: []string{"po"}, Verbs: follow},
			{Name: "pods/log", Kind: "Pod", Verbs: metav1.Verbs{"get"}},
			{Name: "services", SingularName: "service", Kind: "Service", ShortNames: []string{"svc"}, Verbs: follow},
			{Name: "configmaps", SingularName: "configmap", Kind: "ConfigMap", ShortNames: []string{"cm"}, Verbs: follow},
			{Name: "events", SingularName: "event", Kind: "Event", ShortNames: []string{"ev"}, Verbs: follow},
			{Name: "bindings", Kind: "Binding", Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", SingularName: "deployment", Kind: "Deployment", ShortNames: []string{"deploy"}, Verbs: follow},
			{Name: "daemonsets", SingularName: "daemonset", Kind: "DaemonSet", ShortNames: []string{"ds"}, Verbs: follow},
		}},
		{GroupVersion: "events.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "events", SingularName: "event", Kind: "Event", ShortNames: []string{"ev"}, Verbs: follow},
		}},
		{GroupVersion: "example.com/v1alpha1", APIResources: []metav1.APIResource{
			{Name: "widgets", Kind: "Widget", ShortNames: []string{"wdg"}, Verbs: follow},
		}},
	})
	for _, c := range []struct {
		typed string
		want  []string
	}{
		{"deploymnets", []string{"deployments"}},
		{"deploymen", []string{"deployments"}},
		{"depolyment", []string{"deployments"}},
		{"dep", []string{"deployments"}},
		{"pod s", []string{"pods"}},
		{"svcs", []string{"services"}},
		{"Configmapp", []string{"configmaps"}},
		{"widgetz.example.com", []string{"widgets"}},
		{"widget.exampel.com", []string{"widgets"}},
		{"evnts", []string{"events", "events.events.k8s.io"}},
		{"binding", nil},
		{"zzz", nil},
		{"x", nil},
		{"", nil},
	} {
		if got := near(c.typed, all); !slices.Equal(got, c.want) {
			t.Errorf("near(%q) = %q, want %q", c.typed, got, c.want)
		}
	}
}

func TestUnknownTypeErrorOffersNames(t *testing.T) {
	for _, c := range []struct {
		near []string
		want string
	}{
		{nil, "the server has no type \"x\": `kubectl api-resources` lists those it has"},
		{[]string{"pods"}, `the server has no type "x": did you mean pods?`},
		{[]string{"pods", "nodes", "jobs"}, `the server has no type "x": did you mean pods, nodes or jobs?`},
	} {
		if got := (&UnknownTypeError{Name: "x", Near: c.near}).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
