package rollout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachFaultHasARow reads apisim: each function that returns a Fault, and each method of
// its Server that is not known to be harmless, needs a row.
func TestEachFaultHasARow(t *testing.T) {
	covered := map[string]bool{}
	for _, fault := range faults() {
		for _, name := range fault.covers {
			covered[name] = true
		}
	}
	harmless := map[string]bool{}
	for name := range strings.FieldsSeq("Close Config Create Delete ExpectRequests Expire ForgetRequests Get Inject List Listen Load LoadFrom ReadSnapshot Register Requests Seed ServeHTTP Update Watches") {
		harmless[name] = true
	}
	files, err := filepath.Glob("../../apisim/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of apisim: %v", err)
	}
	known := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Name.IsExported() && (makesFault(f) || isOfServer(f) && !harmless[f.Name.Name]) {
				known[f.Name.Name] = true
			}
		}
	}
	for name := range known {
		if !covered[name] {
			t.Errorf("apisim.%s has no row in faults: add one, or list it among the harmless", name)
		}
	}
	for name := range covered {
		if !known[name] {
			t.Errorf("a row of faults is about %s, which apisim does not have", name)
		}
	}
}

func makesFault(f *ast.FuncDecl) bool {
	if f.Recv != nil || f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "Fault"
}

func isOfServer(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return false
	}
	pointer, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	receiver, ok := pointer.X.(*ast.Ident)
	return ok && receiver.Name == "Server"
}
