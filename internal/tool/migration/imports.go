package migration

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// replacements are the packages of client-go that have a counterpart of the same name,
// and the counterparts.
var replacements = map[string]string{
	"k8s.io/client-go/tools/cache":               "github.com/tidings-go/tidings/clientgo/cache",
	"k8s.io/client-go/informers":                 "github.com/tidings-go/tidings/clientgo/informers",
	"k8s.io/client-go/dynamic/dynamicinformer":   "github.com/tidings-go/tidings/clientgo/dynamicinformer",
	"k8s.io/client-go/metadata/metadatainformer": "github.com/tidings-go/tidings/clientgo/metadatainformer",
}

// Imports replaces the imports of a Go file. Nothing else of it changes.
func Imports(name string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	written := 0
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		replacement, ok := replacements[path]
		if !ok {
			continue
		}
		out.Write(text[written:files.Position(spec.Path.Pos()).Offset])
		out.WriteString(strconv.Quote(replacement))
		written = files.Position(spec.Path.End()).Offset
	}
	out.Write(text[written:])
	return out.Bytes(), nil
}

// The modules of this repository that a migrated module requires.
const (
	Tidings        = "github.com/tidings-go/tidings"
	NewCacheModule = Tidings + "/ctrlruntime" // after [NewCache]
)

// The path of controller-runtime's cache, and the counterpart of its New.
const (
	cachePackage   = "sigs.k8s.io/controller-runtime/pkg/cache"
	newCacheCalled = "ctrlruntime.NewCache"
)

// managerPackages are the packages in which the options of a manager are the type Options.
var managerPackages = []string{
	"sigs.k8s.io/controller-runtime", "sigs.k8s.io/controller-runtime/pkg/manager",
}

// NewCache replaces controller-runtime's cache.New in a Go file, which goes on using other
// names of that package, and sets the field NewCache in options of managers that do not set it.
func NewCache(name string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	offset := func(at token.Pos) int { return files.Position(at).Offset }
	end := offset(file.Name.End())
	out := bytes.NewBuffer(bytes.Clone(text[:end]))
	fmt.Fprintf(out, "\n\nimport %q", NewCacheModule)
	written := end
	write := func(from, to token.Pos, replacement string) {
		out.Write(text[written:offset(from)])
		out.WriteString(replacement)
		written = offset(to)
	}
	for node := range ast.Preorder(file) {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			if isName(file, n, "New", cachePackage) {
				write(n.Pos(), n.End(), newCacheCalled)
			}
		case *ast.CompositeLit:
			if isName(file, n.Type, "Options", managerPackages...) && !hasField(n, "NewCache") {
				write(n.Lbrace+1, n.Lbrace+1, "NewCache: "+newCacheCalled+", ")
			}
		}
	}
	if written == end {
		return text, nil
	}
	out.Write(text[written:])
	return out.Bytes(), nil
}

// isName reports whether an expression is an exported name of one of some packages.
func isName(file *ast.File, e ast.Expr, name string, packages ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		path, err := strconv.Unquote(spec.Path.Value)
		return err == nil && slices.Contains(packages, path) && localName(spec, path) == x.Name
	})
}

// localName returns the name of an imported package in the file.
func localName(spec *ast.ImportSpec, importPath string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	// The package controller-runtime is named controllerruntime.
	return strings.ReplaceAll(path.Base(importPath), "-", "")
}

// hasField reports whether a composite literal sets a field by name.
func hasField(literal *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(literal.Elts, func(e ast.Expr) bool {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := pair.Key.(*ast.Ident)
		return ok && key.Name == name
	})
}

// Replace returns the text of a Go file with parts replaced: [Imports] or [NewCache].
type Replace func(name string, text []byte) ([]byte, error)

// In replaces parts of the files below directories of a module whose names have an ending.
func (replace Replace) In(module string, directories []string, ending string) error {
	for _, dir := range directories {
		err := filepath.WalkDir(filepath.Join(module, dir),
			func(path string, entry fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return err
				case entry.IsDir() && entry.Name() == "testdata":
					return fs.SkipDir
				case entry.IsDir() || !strings.HasSuffix(path, ending):
					return nil
				}
				return replace.file(path)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func (replace Replace) file(path string) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, err := replace(path, before)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return os.WriteFile(path, after, 0o644)
}
