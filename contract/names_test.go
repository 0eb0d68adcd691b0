package contract_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/health"
)

// TestTypesWithOddNames asks for resources and kinds as definitions may name them, in both
// scopes and for each form of informer.
func TestTypesWithOddNames(t *testing.T) {
	for _, name := range []struct{ group, plural, kind string }{
		{"example.com", "planet", "planet"},          // the plural is the kind
		{"example.com", "planetlist", "PlanetList"},  // a kind that ends as lists do
		{"example.com", "lists", "List"},             // the kind of lists themselves
		{"a-b.c-d.example.com", "planets", "Planet"}, // dashes
		{"example.com", "secrets", "Secret"},         // of another group than Secrets
		{"example.com", "watch", "Status"},           // words of the protocol
		{"example.com", "namespaces", "Namespace"},   // a segment of paths
		{"1.example", "p1", "P1"},                    // digits
	} {
		for _, namespaced := range []bool{true, false} {
			t.Run(fmt.Sprint(name, namespaced), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					followOdd(t, name.group, name.plural, name.kind, namespaced)
				})
			})
		}
	}
}

func followOdd(t *testing.T, group, plural, kind string, namespaced bool) {
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
	o := tidings.FactoryOptions{Scheme: widgetScheme(), Namespaces: []string{"default"}}
	o.Scheme.AddKnownTypeWithName(gvr.GroupVersion().WithKind(kind), &oddly{})
	w := newWorld(t, nil, o, apisim.Options{})
	defer w.end()
	w.must(w.server.Register(apisim.Resource{
		Group: group, Version: "v1", Name: plural, Kind: kind, Namespaced: namespaced,
	}))
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": kind,
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"n": "1"}},
	}}
	key := "a"
	if namespaced {
		obj.SetNamespace("default")
		key = "default/a"
	}
	if _, err := w.server.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	typed, err := tidings.For[*oddly](w.factory, tidings.Selection{})
	probes := []probe{newProbe(t, typed, err)}
	asMap, err := tidings.Dynamic(w.factory, gvr, tidings.Selection{})
	probes = append(probes, newProbe(t, asMap, err))
	metadata, err := tidings.Metadata(w.factory, gvr, tidings.Selection{})
	probes = append(probes, newProbe(t, metadata, err))
	w.start()
	for _, p := range probes {
		if p.get(key) == "" {
			t.Errorf("%s holds %v", p.informer().Name(), p.state())
		}
	}
}

// oddly is an object of a type with an odd name.
type oddly struct{ widget }

// TestResourcesThatCannotBe asks for names that are no resource's: an error at once, or
// health that says so.
func TestResourcesThatCannotBe(t *testing.T) {
	for _, name := range []string{
		"Pods", "pods/status", "pods/", "../nodes", "pods?limit=1", "a b", "pods.v1",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
			defer w.end()
			gvr := schema.GroupVersionResource{Version: "v1", Resource: name}
			informer, err := tidings.Dynamic(w.factory, gvr, tidings.Selection{})
			if err != nil {
				return
			}
			w.startFactory()
			w.after(time.Minute)
			if h := informer.Health(); h.Synced || h.State != health.StateNoSuchResource ||
				errors.Is(h.LastError, nil) {
				t.Errorf("%q: health is %+v", name, h)
			}
		})
	}
}
