package sharedinformer

import (
	"errors"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// named is a ListerWatcher that names a source.
type named struct {
	cache.ListerWatcher
	resource source.Resource
	options  source.RESTOptions
}

func (n named) Reading() (*source.Client, source.Resource, source.RESTOptions) {
	return nil, n.resource, n.options
}

// TestNamedSourcesShareAsTheySay, but for Secrets.
func TestNamedSourcesShareAsTheySay(t *testing.T) {
	var o source.RESTOptions
	o.Sharing, o.Table = source.ShareStrings, new(source.Table)
	for kind, want := range map[string]source.Sharing{
		"ConfigMap": source.ShareStrings, "Secret": source.ShareNothing,
	} {
		resource := source.Resource{Version: "v1", Kind: kind}
		got := FromReadable(named{resource: resource, options: o}, Options{}).Sharing
		if got != (listwatch.Sharing{AtMost: want, Among: o.Table, NoSecrets: true}) {
			t.Errorf("%s: the informer shares %+v", kind, got)
		}
	}
}

// TestTransformsReceiveObjectsThatShareStringsAtMost: a transform may write to them.
func TestTransformsReceiveObjectsThatShareStringsAtMost(t *testing.T) {
	transform := func(obj any) (any, error) { return obj, nil }
	for _, tt := range []struct {
		atMost    source.Sharing
		transform cache.TransformFunc
		want      source.Sharing
	}{
		{source.ShareAll, nil, source.ShareAll},
		{source.ShareAll, transform, source.ShareStrings},
		{source.ShareStrings, transform, source.ShareStrings},
		{source.ShareNothing, nil, source.ShareNothing},
		{source.ShareNothing, transform, source.ShareNothing},
	} {
		var opened []source.Sharing
		i := New(Options{Sharing: listwatch.Sharing{AtMost: tt.atMost}, Open: func(_ string, most source.Sharing) source.Source[any] {
			opened = append(opened, most)
			return &script{}
		}})
		if err := i.SetTransform(tt.transform); err != nil {
			t.Fatal(err)
		}
		i.part(t.Context(), "", source.ScopeUnknown)
		if len(opened) != 1 || opened[0] != tt.want {
			t.Errorf("sharing %v, with a transform: %v: the source shares %v, want %v", tt.atMost, tt.transform != nil, opened, tt.want)
		}
	}
}

// TestObjectsWithoutASlotAreRefused: those without a namespace, where slots are by namespace.
func TestObjectsWithoutASlotAreRefused(t *testing.T) {
	for _, tt := range []struct {
		slots *slot.Holding
		key   string
		want  error
	}{
		{nil, "a", nil},
		{slot.NewHolding(slot.UID, slot.All()), "a", nil},
		{slot.NewHolding(slot.Namespace, slot.All()), "a", slot.ErrNoNamespace},
		{slot.NewHolding(slot.Namespace, slot.All()), "default/a", nil},
	} {
		i := New(Options{Source: &script{}, Slots: tt.slots})
		if err := i.hasSlot(source.Item[any]{Key: tt.key}, false); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.key, err, tt.want)
		}
	}
}
