package cache_test

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	upstream "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/internal/tool/gen/cacheforward/forward"
)

// TestForwardsGenerated: the generated names are those of client-go, as the generator writes them.
func TestForwardsGenerated(t *testing.T) {
	want, err := forward.Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(forward.Output)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the generator writes. Run: go generate ./clientgo/cache", forward.Output)
	}
}

// TestForwardsOurs: the functions that this package implements itself have client-go's types.
func TestForwardsOurs(t *testing.T) {
	for name, functions := range map[string][2]any{
		"ListAll":            {cache.ListAll, upstream.ListAll},
		"ListAllByNamespace": {cache.ListAllByNamespace, upstream.ListAllByNamespace},
		"NewGenericLister":   {cache.NewGenericLister, upstream.NewGenericLister},
		//lint:ignore SA1019 old programs call it
		"NewIndexerInformer": {cache.NewIndexerInformer, upstream.NewIndexerInformer},
		//lint:ignore SA1019 old programs call it
		"NewInformer":                       {cache.NewInformer, upstream.NewInformer},
		"NewInformerWithOptions":            {cache.NewInformerWithOptions, upstream.NewInformerWithOptions},
		"NewSharedIndexInformer":            {cache.NewSharedIndexInformer, upstream.NewSharedIndexInformer},
		"NewSharedIndexInformerWithOptions": {cache.NewSharedIndexInformerWithOptions, upstream.NewSharedIndexInformerWithOptions},
		"NewSharedInformer":                 {cache.NewSharedInformer, upstream.NewSharedInformer},
		//lint:ignore SA1019 old programs call it
		"NewTransformingIndexerInformer": {cache.NewTransformingIndexerInformer, upstream.NewTransformingIndexerInformer},
		//lint:ignore SA1019 old programs call it
		"NewTransformingInformer": {cache.NewTransformingInformer, upstream.NewTransformingInformer},
	} {
		if ours, theirs := reflect.TypeOf(functions[0]), reflect.TypeOf(functions[1]); ours != theirs {
			t.Errorf("%s is a %v, client-go's is a %v", name, ours, theirs)
		}
	}
}

// TestForwardsCaller: functions that name something by their caller are client-go's own.
func TestForwardsCaller(t *testing.T) {
	for name, functions := range map[string][2]any{
		"NewNamedReflector":                    {cache.NewNamedReflector, upstream.NewNamedReflector},
		"NewNamespaceKeyedIndexerAndReflector": {cache.NewNamespaceKeyedIndexerAndReflector, upstream.NewNamespaceKeyedIndexerAndReflector},
		"NewReflector":                         {cache.NewReflector, upstream.NewReflector},
		"NewReflectorWithOptions":              {cache.NewReflectorWithOptions, upstream.NewReflectorWithOptions},
		"WaitFor":                              {cache.WaitFor, upstream.WaitFor},
	} {
		if reflect.ValueOf(functions[0]).Pointer() != reflect.ValueOf(functions[1]).Pointer() {
			t.Errorf("%s stands between its caller and client-go's: put it into the variables of tables.go", name)
		}
	}
}
