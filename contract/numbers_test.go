package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// programs are directories without packages that users import.
var programs = []string{"bench", "cmd", "e2e", "examples", "internal", "testdata"}

// numbers are the types of the numbers that are found.
var numbers = map[string]bool{
	"int": true, "int8": true, "int16": true, "int32": true, "int64": true,
	"uint": true, "uint8": true, "uint16": true, "uint32": true, "uint64": true,
	"float32": true, "float64": true, "time.Duration": true, "Duration": true,
}

// exportedNumbers returns the numbers of the exported API, as package.Type.Field and as
// package.Function(parameter), or package.Type.Method(parameter).
func exportedNumbers(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && name != ".."
			if hidden || slices.Contains(programs, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		of := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../")
		if of == ".." {
			of = "tidings"
		}
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				addParameters(found, of, d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
						addFields(found, of+"."+s.Name.Name, s.Type)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}

func addFields(found map[string]bool, of string, declared ast.Expr) {
	s, ok := declared.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range s.Fields.List {
		for _, name := range field.Names {
			if !name.IsExported() {
				continue
			}
			addFields(found, of+"."+name.Name, field.Type)
			if numbers[typeName(field.Type)] {
				found[of+"."+name.Name] = true
			}
		}
	}
}

func addParameters(found map[string]bool, of string, f *ast.FuncDecl) {
	if !f.Name.IsExported() {
		return
	}
	if f.Recv != nil {
		receiver := typeName(f.Recv.List[0].Type)
		if !ast.IsExported(receiver) {
			return
		}
		of = path.Join(of) + "." + receiver
	}
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if numbers[typeName(field.Type)] {
				found[of+"."+f.Name.Name+"("+name.Name+")"] = true
			}
		}
	}
}

// typeName returns the name of a type, of the element of a pointer, and of a generic type.
func typeName(of ast.Expr) string {
	switch x := of.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return typeName(x.X) + "." + x.Sel.Name
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	}
	return ""
}

// TestEveryNumberIsTriedOrExcluded finds a number of the API that no test tries at its ends, and
// that notTried does not list, and entries for numbers that are not there any more.
func TestEveryNumberIsTriedOrExcluded(t *testing.T) {
	found := exportedNumbers(t)
	if len(found) < 100 {
		t.Fatalf("only %d numbers were found: %q", len(found), found)
	}
	known := map[string]bool{}
	for _, name := range tried(t) {
		known[name] = true
		if !slices.Contains(found, name) {
			t.Errorf("%s is tried, and is not in the API", name)
		}
	}
	used := map[string]bool{}
	for _, name := range found {
		reason := ""
		for listed := range notTried {
			if name == listed || strings.HasPrefix(name, listed+".") {
				used[listed], reason = true, listed
			}
		}
		switch {
		case known[name] && reason == name:
			t.Errorf("%s is tried, and is listed as if it were not", name)
		case !known[name] && reason == "":
			t.Errorf("%s is not tried at its ends: add it to inputs or parameters, or to notTried "+
				"with the reason", name)
		}
	}
	for listed := range notTried {
		if !used[listed] {
			t.Errorf("%s is in notTried, and is not in the API", listed)
		}
	}
}

// notTried are numbers, or all of a type, that are not tried, with the reason.
var notTried = map[string]string{
	// Figures that Tidings gives.
	"apisim.Request":  "what a server has seen",
	"controller.Call": "a figure",
	"controller/election.Elector.SetGrace(grace)": "any time is a wait, and one not above 0 is none",
	"controller.Health":                           "figures",
	"controller.Bands":                            "figures",
	"controller.Flow":                             "figures",
	"controller.Request":                          "what a call is given",
	"controller.Reason":                           "a figure",
	"controller.Rewrite":                          "a figure",
	"controller/election.Health":                  "figures",
	"controller/guard.Stats":                      "figures",
	"controller.Wait":                             "figures",
	"debug.Cached":                                "figures",
	"debug.Cause":                                 "figures",
	"debug.Failures":                              "figures",
	"debug.Graph.Bars(n)":                         "a width of the terminal",
	"debug.Graph.Text(value)":                     "a figure of a page, for its template",
	"debug.History":                               "figures",
	"debug.Pager":                                 "figures",
	"debug.Problem":                               "figures",
	"debug.WaitTable":                             "figures",
	"debug.Change":                                "figures",
	"debug.ChangesFigures":                        "figures",
	"debug.ControllerRow":                         "figures",
	"debug.GroupFigures":                          "figures",
	"debug.HandlerRow":                            "figures",
	"tidings.Meta":                                "a figure of the server's",
	"debug.InformerFigures":                       "figures",
	"debug.InformerRow":                           "figures",
	"debug.Process":                               "figures",
	"health.Handler":                              "figures",
	"health.Informer":                             "figures",
	"health.Watch":                                "figures",
	"controller.Slots.Calls(entry)":               "an entry of a group: the group alone calls it",
	"shard.Entry":                                 "figures",
	"shard.Health":                                "figures",
	"shard.MemberHealth":                          "figures",
	"shard.Moves":                                 "figures",
	"shard.Report":                                "figures",
	"source.DecodingStats":                        "figures",
	"source.Page.Remaining":                       "what a server says; it is shown alone",
	"store.Memory":                                "a figure",
	"tidingstest.Setting":                         "what the kit gives to the constructor of a kind",
	"tidingstest.Kind.Namespaces":                 "what the author of a kind says of it",
	"store.Snapshot.At(position)":                 "tried by the model of package store: it panics like an index of a slice",
	"flight.Read(size)":                           "the size of a file: another one is a damaged file, as FuzzRead has them",
	"apisim.Server.ExpectRequests(count)":         "what a test expects: another number fails it",
	"apisim/protocoltest.Server.EventTimeout":     "how long the tests of a server wait: too short fails them",
	"tidingstest.Server.Patience":                 "how long the tests of a server wait: too short fails them",
	// client-go's functions under their names.
	"clientgo/cache.NewIntegerResourceVersionMutationCache(ttl)":  "client-go's function",
	"clientgo/cache.NewRetryWithDeadline(maxRetryDuration)":       "client-go's function",
	"clientgo/cache.NewRetryWithDeadline(minResetPeriod)":         "client-go's function",
	"clientgo/cache.NewTTLStore(ttl)":                             "client-go's function",
	"clientgo/cache.NewInformer(resyncPeriod)":                    "client-go's controller over NewSharedIndexInformer, which is tried",
	"clientgo/cache.NewIndexerInformer(resyncPeriod)":             "as NewInformer",
	"clientgo/cache.NewTransformingInformer(resyncPeriod)":        "as NewInformer",
	"clientgo/cache.NewTransformingIndexerInformer(resyncPeriod)": "as NewInformer",

	"clientgo/cache.NewSharedInformer(defaultEventHandlerResyncPeriod)":                  "as NewSharedIndexInformer",
	"clientgo/dynamicinformer.NewFilteredDynamicSharedInformerFactory(defaultResync)":    "as NewDynamicSharedInformerFactory",
	"clientgo/dynamicinformer.NewDynamicSharedInformerFactoryWithOptions(defaultResync)": "as NewDynamicSharedInformerFactory",
	"clientgo/dynamicinformer.NewFilteredDynamicInformer(resyncPeriod)":                  "as NewDynamicSharedInformerFactory",
	"clientgo/dynamicinformer.NewDynamicInformerWithOptions(resyncPeriod)":               "as NewDynamicSharedInformerFactory",
	"clientgo/informers.NewFilteredSharedInformerFactory(defaultResync)":                 "as NewSharedInformerFactory",
	"clientgo/informers.NewSharedInformerFactoryWithOptions(defaultResync)":              "as NewSharedInformerFactory",
	"clientgo/informers.NewFilteredFor(resync)":                                          "as NewSharedInformerFactory",
	"clientgo/metadatainformer.NewFilteredSharedInformerFactory(defaultResync)":          "as NewSharedInformerFactory",
	"clientgo/metadatainformer.NewSharedInformerFactoryWithOptions(defaultResync)":       "as NewSharedInformerFactory",
	"clientgo/metadatainformer.NewFilteredMetadataInformer(resyncPeriod)":                "as NewSharedInformerFactory",
	"clientgo/metadatainformer.NewMetadataInformerWithOptions(resyncPeriod)":             "as NewSharedInformerFactory",
}
