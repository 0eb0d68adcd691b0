package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// enterRoot makes the root of the repository the working directory of a test.
func enterRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../../..")
}

const module = "github.com/tidings-go/tidings"

// goFile is a parsed Go file of this module.
type goFile struct {
	dir  string // slash-separated, "." for the root
	name string
	ast  *ast.File
}

// goFiles parses every Go file of this module.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	return parseFiles(t, walk)
}

// parseFiles parses every Go file that walk, or walkModules, visits.
func parseFiles(t *testing.T, walk func(*testing.T, string, func(string))) []goFile {
	t.Helper()
	var files []goFile
	fset := token.NewFileSet()
	walk(t, ".go", func(name string) {
		parsed, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if isIgnored(parsed) {
			return
		}
		files = append(files, goFile{dir: path.Dir(name), name: path.Base(name), ast: parsed})
	})
	return files
}

// isIgnored reports whether a file belongs to no package, as the sources of other programs do.
func isIgnored(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Text == "//go:build ignore" && comment.Pos() < file.Package {
				return true
			}
		}
	}
	return false
}

// walk calls f with the slash-separated name of every file of an extension, except those that the
// go command ignores too.
func walk(t *testing.T, extension string, f func(name string)) {
	t.Helper()
	walkExcept(t, isModule, extension, f)
}

// walkModules is walk for this module and for those beside it.
func walkModules(t *testing.T, extension string, f func(name string)) {
	t.Helper()
	walkExcept(t, func(string) bool { return false }, extension, f)
}

func walkExcept(
	t *testing.T, skips func(dir string) bool, extension string, f func(name string),
) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() && name != "." && skips(name):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, extension):
			f(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isModule reports whether a directory is a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func TestArchitectureWalls(t *testing.T) {
	enterRoot(t)
	for _, file := range goFiles(t) {
		rule, ok := wallOf(file.dir)
		if !ok {
			t.Errorf("%s: package %q has no entry in walls: say there what it may import",
				file.name, file.dir)
			continue
		}
		isTest := strings.HasSuffix(file.name, "_test.go")
		for _, spec := range file.ast.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if !rule.allows(imported, isTest) {
				t.Errorf("%s imports %s, which package %q may not by its entry in walls",
					path.Join(file.dir, file.name), imported, file.dir)
			}
		}
	}
}

func wallOf(dir string) (wall, bool) {
	for ; dir != "."; dir = path.Dir(dir) {
		if w, ok := walls[dir]; ok {
			return w, true
		}
	}
	w, ok := walls[dir]
	return w, ok
}

func (w wall) allows(imported string, isTest bool) bool {
	if within(imported, nowhere...) && !w.dropIn {
		return false
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	room, ours := roomOf(imported)
	if isTest &&
		(slices.Contains(w.tests, "*") || slices.Contains(w.tests, room) || within(imported, w.tests...)) {
		return true
	}
	if ours {
		return slices.Contains(w.rooms, "*") || w.opensTo(room)
	}
	return slices.Contains(w.others, "*") || within(imported, w.others...)
}

// opensTo reports whether one of the rooms is this one, or is above it without an entry of walls
// between them.
func (w wall) opensTo(room string) bool {
	for dir := room; ; dir = path.Dir(dir) {
		if slices.Contains(w.rooms, dir) {
			return true
		}
		if _, own := walls[dir]; own || dir == "." {
			return false
		}
	}
}

// roomOf returns the directory of a package of this module.
func roomOf(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// within reports whether a path is one of some, or lies below one.
func within(name string, some ...string) bool {
	return slices.ContainsFunc(some, func(s string) bool { return name == s || strings.HasPrefix(name, s+"/") })
}

// TestArchitectureSimulator keeps the simulator independent of the informers that it tests: neither
// it nor its tests may import their packages.
func TestArchitectureSimulator(t *testing.T) {
	enterRoot(t)
	for _, file := range goFiles(t) {
		if file.dir != "apisim" {
			continue
		}
		for _, spec := range file.ast.Imports {
			room, ours := roomOf(strings.Trim(spec.Path.Value, `"`))
			if ours && slices.Contains(informerRooms, room) {
				t.Errorf("apisim/%s imports %s of the informer", file.name, room)
			}
		}
	}
}

// TestArchitectureLight looks at everything that a user of the native API compiles.
func TestArchitectureLight(t *testing.T) {
	enterRoot(t)
	for imported := range strings.FieldsSeq(goCommand(t, "list", "-deps", ".")) {
		if within(imported, heavy...) && !within(imported, "k8s.io/client-go/kubernetes/scheme") {
			t.Errorf("the native API brings %s with it", imported)
		}
	}
}

// goCommand runs the go command in the module's root and returns its output.
func goCommand(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", arguments...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return string(out)
}

// TestArchitecturePackageDocs asks for a comment on every package: in doc.go for
// those that a user can import.
func TestArchitecturePackageDocs(t *testing.T) {
	enterRoot(t)
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file.name, "_test.go") ||
			strings.Contains(file.dir+"/", "/generated/") {
			continue
		}
		has := file.ast.Doc != nil && (file.name == "doc.go" || file.ast.Name.Name == "main" || strings.HasPrefix(file.dir, "internal/"))
		documented[file.dir] = documented[file.dir] || has
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			t.Errorf("package %q has no comment in %s", dir, path.Join(dir, "doc.go"))
		}
	}
	page := readFile(t, "ARCHITECTURE.md")
	for dir := range documented {
		if within(dir, "cmd/tidings/internal", "examples/clientgo", "internal/tool/gen") {
			continue // the command and their pages lead to these
		}
		if !strings.Contains(page, "]("+dir+")") &&
			!strings.Contains(page, "]("+path.Join(dir, "doc.go")+")") {
			t.Errorf("ARCHITECTURE.md does not lead to package %q", dir)
		}
	}
}
