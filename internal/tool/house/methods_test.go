package house

import (
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// mostFiles is the number of files in which the methods of a type may stand.
const mostFiles = 4

// TestMethodsStandTogether checks that the types whose methods stand in more files are those that
// ARCHITECTURE.md names with a reason.
func TestMethodsStandTogether(t *testing.T) {
	enterRoot(t)
	files := map[string]map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file.name, "_test.go") {
			continue
		}
		for _, decl := range file.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
				receiver := strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*")
				name, _, _ := strings.Cut(receiver, "[")
				of := path.Base(file.dir) + "." + name
				if files[of] == nil {
					files[of] = map[string]bool{}
				}
				files[of][file.name] = true
			}
		}
	}
	maps.DeleteFunc(files, func(_ string, in map[string]bool) bool { return len(in) <= mostFiles })
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Types in many files\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) > 2 && strings.HasPrefix(cells[1], " `") {
			for name := range strings.SplitSeq(cells[1], ",") {
				named = append(named, strings.Trim(name, " `"))
			}
		}
	}
	slices.Sort(named)
	if found := slices.Sorted(maps.Keys(files)); !slices.Equal(found, named) {
		t.Errorf("methods stand in more than %d files of %q; ARCHITECTURE.md names %q",
			mostFiles, found, named)
	}
}
