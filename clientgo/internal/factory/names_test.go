package factory_test

import (
	"go/types"
	"slices"
	"testing"

	"github.com/tidings-go/tidings/internal/gen/cacheforward/forward"
)

// twins are our packages and client-go's of the same name.
var twins = []struct {
	ours, theirs string
	// own are types that cannot be client-go's, as only its own factory has a use for
	// them.
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
		own: []string{"SharedInformerOption"}, added: append([]string{"NewMetadataInformerWithOptions"}, addedToBoth...),
	},
}

var addedToBoth = []string{
	"Client", "NewClient", "ReadWith",
	"WithDrop", "WithDropFor", "WithNamespace", "WithSharing", "WithSharingAmong", "WithTweakListOptions",
}

// TestNames asks for every exported name of client-go, with its type, and for no other than
// those that were added.
func TestNames(t *testing.T) {
	paths := []string{}
	for _, twin := range twins {
		paths = append(paths, twin.ours, twin.theirs)
	}
	packages, err := forward.Load(t.Context(), paths...)
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
			if !slices.Contains(twin.own, name) && !sameType(our.Type(), their.Type(), twin.own) {
				t.Errorf("%v is not client-go's %v", our, their)
			}
		}
	}
}

// exported returns the exported names of a package, sorted.
func exported(p *types.Package) []string {
	return slices.DeleteFunc(p.Scope().Names(), func(name string) bool { return !p.Scope().Lookup(name).Exported() })
}

// sameType reports whether two types are one, with each of own standing for its
// namesake. It looks for those where they are, in parameters and results.
func sameType(our, their types.Type, own []string) bool {
	if types.Identical(our, their) {
		return true
	}
	switch our := types.Unalias(our).(type) {
	case *types.Named:
		their, ok := types.Unalias(their).(*types.Named)
		return ok && our.Obj().Name() == their.Obj().Name() && slices.Contains(own, our.Obj().Name())
	case *types.Slice: // of a variadic function
		their, ok := types.Unalias(their).(*types.Slice)
		return ok && sameType(our.Elem(), their.Elem(), own)
	case *types.Signature:
		their, ok := types.Unalias(their).(*types.Signature)
		return ok && our.Variadic() == their.Variadic() &&
			sameTuple(our.Params(), their.Params(), own) && sameTuple(our.Results(), their.Results(), own)
	}
	return false
}

func sameTuple(ours, theirs *types.Tuple, own []string) bool {
	if ours.Len() != theirs.Len() {
		return false
	}
	for i := range ours.Len() {
		if !sameType(ours.At(i).Type(), theirs.At(i).Type(), own) {
			return false
		}
	}
	return true
}
