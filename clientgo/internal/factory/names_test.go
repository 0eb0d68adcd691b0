package factory_test

import (
	"go/types"
	"slices"
	"testing"

	"github.com/tidings-go/tidings/internal/tool/gen/cacheforward/forward"
)

// twins are our packages and client-go's of the same name.
var twins = []struct {
	ours, theirs string
	// own are the option type, which is for our factory, and the functions with it.
	own []string
	// added are names that client-go does not have.
	added []string
}{
	{
		ours: "github.com/tidings-go/tidings/clientgo/dynamicinformer", theirs: "k8s.io/client-go/dynamic/dynamicinformer",
		added: append([]string{"NewDynamicInformerWithOptions", "NewDynamicSharedInformerFactoryWithOptions", "SharedInformerOption", "WithTransform"}, addedToBoth...),
	},
	{
		ours: "github.com/tidings-go/tidings/clientgo/metadatainformer", theirs: "k8s.io/client-go/metadata/metadatainformer",
		own: []string{"NewSharedInformerFactoryWithOptions", "SharedInformerOption", "WithTransform"}, added: append([]string{"NewMetadataInformerWithOptions"}, addedToBoth...),
	},
}

var addedToBoth = []string{
	"Client", "NewClient", "ReadWith",
	"WithDrop", "WithDropFor", "WithNamespace", "WithRecorder", "WithSharing", "WithSharingAmong",
	"WithSlots", "WithoutServerDrop", "WithTweakListOptions",
}

// TestNames requires every exported name of client-go, with its type, and no other names than
// those that were added.
func TestNames(t *testing.T) {
	paths := []string{}
	for _, twin := range twins {
		paths = append(paths, twin.ours, twin.theirs)
	}
	packages, err := forward.Load(t.Context(), ".", paths...)
	if err != nil {
		t.Fatal(err)
	}
	for _, twin := range twins {
		ours, err := packages.Import(twin.ours)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := packages.Import(twin.theirs)
		if err != nil {
			t.Fatal(err)
		}
		names := exported(theirs)
		if want := slices.Sorted(slices.Values(slices.Concat(names, twin.added))); len(names) == 0 || !slices.Equal(exported(ours), want) {
			t.Errorf("%s exports %v, want the names of %s and those that were added: %v", twin.ours, exported(ours), twin.theirs, want)
			continue
		}
		for _, name := range names {
			our, their := ours.Scope().Lookup(name), theirs.Scope().Lookup(name)
			if !slices.Contains(twin.own, name) && !types.Identical(our.Type(), their.Type()) {
				t.Errorf("%v is not client-go's %v", our, their)
			}
		}
	}
}

// exported returns the exported names of a package, sorted.
func exported(p *types.Package) []string {
	return slices.DeleteFunc(p.Scope().Names(), func(name string) bool { return !p.Scope().Lookup(name).Exported() })
}
