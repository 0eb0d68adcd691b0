package cache_test

import (
	"bytes"
	"errors"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	upstream "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/internal/gen/cacheforward/forward"
)

// additions are the exported names that client-go does not have.
var additions = []string{"Controlled", "HealthOf", "IndexLabels", "IndexOwners", "Owned", "Select", "SharingOptions", "WithSharing"}

// scopes returns what both packages declare, in one universe of types.
func scopes(t *testing.T) (ours, theirs *types.Scope) {
	t.Helper()
	packages, err := forward.Load(t.Context(), forward.Package, forward.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	scope := func(path string) *types.Scope {
		p, err := packages.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		return p.Scope()
	}
	return scope(forward.Package), scope(forward.Upstream)
}

// exported returns the exported names of a scope, sorted.
func exported(scope *types.Scope) []string {
	return slices.DeleteFunc(scope.Names(), func(name string) bool { return !scope.Lookup(name).Exported() })
}

func TestForwardsNames(t *testing.T) {
	ours, theirs := scopes(t)
	names := exported(theirs)
	if len(names) == 0 {
		t.Fatalf("%s exports nothing", forward.Upstream)
	}
	for _, name := range names {
		if ours.Lookup(name) == nil {
			t.Errorf("%s is missing: run go generate, or write it by hand if tables.go calls it ours", name)
		}
	}
	for _, name := range additions {
		if ours.Lookup(name) == nil || theirs.Lookup(name) != nil {
			t.Errorf("%s is no addition: this package lacks it, or client-go has it too", name)
		}
	}
	for _, name := range exported(ours) {
		if theirs.Lookup(name) == nil && !slices.Contains(additions, name) {
			t.Errorf("client-go has no %s: keep it to the package, or add it to the additions", name)
		}
	}
}

// TestForwardsTypes covers the functions that are written by hand too.
func TestForwardsTypes(t *testing.T) {
	ours, theirs := scopes(t)
	for _, name := range exported(ours) {
		if their := theirs.Lookup(name); their != nil {
			if problem := compare(ours.Lookup(name), their); problem != "" {
				t.Errorf("%s: %s\n ours is %v\nclient-go's is %v", name, problem, ours.Lookup(name), their)
			}
		}
	}
}

// compare returns the difference between a forward and its original, "" without one.
func compare(our, their types.Object) string {
	switch their := their.(type) {
	case *types.Const:
		our, ok := our.(*types.Const)
		if !ok || !constant.Compare(our.Val(), token.EQL, their.Val()) || !types.Identical(our.Type(), their.Type()) {
			return "not the same constant"
		}
	case *types.Var:
		if _, ok := our.(*types.Var); !ok || !types.Identical(our.Type(), their.Type()) {
			return "not a variable of the same type"
		}
	case *types.Func:
		switch our.(type) {
		case *types.Func, *types.Var:
		default:
			return "not a function"
		}
		if !types.Identical(our.Type(), their.Type()) {
			return "not the same signature"
		}
	case *types.TypeName:
		alias, ok := our.Type().(*types.Alias)
		if !ok {
			return "not an alias"
		}
		return compareAlias(alias, their.Type())
	}
	return ""
}

// compareAlias says how an alias differs from a type, which is generic if the alias is.
func compareAlias(alias *types.Alias, their types.Type) string {
	if alias.TypeParams().Len() == 0 {
		if !types.Identical(types.Unalias(alias), types.Unalias(their)) {
			return "not the same type"
		}
		return ""
	}
	generic, ok := their.(*types.Named)
	if !ok || generic.TypeParams().Len() != alias.TypeParams().Len() {
		return "not as many type parameters"
	}
	instance, ok := alias.Rhs().(*types.Named)
	if !ok || instance.Origin() != generic {
		return "an alias of another generic type"
	}
	for i := range alias.TypeParams().Len() {
		parameter := alias.TypeParams().At(i)
		if instance.TypeArgs().At(i) != parameter {
			return "type parameters passed on in another order"
		}
		if !types.Identical(parameter.Constraint(), generic.TypeParams().At(i).Constraint()) {
			return "another constraint"
		}
	}
	return ""
}

func TestForwardsGenerated(t *testing.T) {
	want, err := forward.Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, err := forward.Output(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if here, err := filepath.Abs(filepath.Base(name)); err != nil || !sameFile(t, here, name) {
		t.Fatalf("the generator writes %s, which is not in this package (%v)", name, err)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the generator writes. Run: go generate ./clientgo/cache", filepath.Base(name))
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	first, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(first, second)
}

// TestForwardsErrors has a row for every variable that client-go exports. All of them are errors.
func TestForwardsErrors(t *testing.T) {
	table := map[string][2]error{
		"ErrFIFOClosed":             {cache.ErrFIFOClosed, upstream.ErrFIFOClosed},
		"ErrZeroLengthDeltasObject": {cache.ErrZeroLengthDeltasObject, upstream.ErrZeroLengthDeltasObject},
	}
	for name, values := range table {
		if values[0] == nil || values[0] != values[1] {
			t.Errorf("%s is %v, client-go's is %v: not the same value", name, values[0], values[1])
		}
	}
	_, theirs := scopes(t)
	for _, name := range exported(theirs) {
		if _, ok := theirs.Lookup(name).(*types.Var); ok && table[name][0] == nil {
			t.Errorf("client-go exports the variable %s: add it to this table", name)
		}
	}
	queue := cache.NewFIFO(cache.MetaNamespaceKeyFunc)
	queue.Close()
	_, err := queue.Pop(func(any, bool) error { return nil })
	if !errors.Is(err, cache.ErrFIFOClosed) {
		t.Errorf("Pop of a closed queue returns %v, want %v", err, cache.ErrFIFOClosed)
	}
}

// TestForwardsCaller asks for the very functions of client-go where they look at their caller. What a reflector is
// called in the end depends on the directory client-go was built from, so its name would prove nothing here.
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
