package dedup_test

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/dedup"
)

func ExampleMapDecoder() {
	var table dedup.Table // one for all decoders
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	decoder := dedup.NewMapDecoder(&table, kind, dedup.ShareAll, nil)

	var widgets []map[string]any
	for _, name := range []string{"left", "middle", "right"} {
		widget, err := decoder.Unmarshal(fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"color":"red","pieces":12}}`, name))
		if err != nil {
			fmt.Println(err)
			return
		}
		widgets = append(widgets, widget)
	}
	fmt.Println(widgets[1]["metadata"], widgets[2]["metadata"])
	spec := func(i int) uintptr { return reflect.ValueOf(widgets[i]["spec"]).Pointer() }
	fmt.Println(spec(1) == spec(2))
	// Output:
	// map[name:middle] map[name:right]
	// true
}
