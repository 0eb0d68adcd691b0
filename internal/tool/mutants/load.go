package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"

	"github.com/tidings-go/tidings/internal/tool/gen/cacheforward/forward"
)

// pkg is a package whose code is changed.
type pkg struct {
	dir      string // relative to the root of the module
	abs      string
	path     string
	name     string
	fset     *token.FileSet
	files    []*file
	info     *types.Info
	importer types.Importer
	first    int // the number of its first mutant
	last     int
}

// file is a file of a package.
type file struct {
	name   string // absolute
	rel    string // relative to the root of the module, with slashes
	text   []byte
	syntax *ast.File
	// mutants are those that compile.
	mutants []*mutant
}

// load parses and type-checks the packages of directories.
func load(ctx context.Context, root string, dirs []string) ([]*pkg, error) {
	paths := []string{"cmp", "os", "strconv", "sync/atomic"} // the helpers import these
	for _, dir := range dirs {
		paths = append(paths, "./"+dir)
	}
	loaded, err := forward.Load(ctx, root, paths...)
	if err != nil {
		return nil, err
	}
	var packages []*pkg
	for _, l := range loaded.Named() {
		p, err := parse(root, l, loaded)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// parse reads the files of a package.
func parse(root string, l forward.Listed, importer types.Importer) (*pkg, error) {
	p := &pkg{
		abs: l.Dir, path: l.ImportPath, name: l.Name, fset: token.NewFileSet(), importer: importer,
	}
	var err error
	if p.dir, err = filepath.Rel(root, l.Dir); err != nil {
		return nil, err
	}
	const mode = parser.ParseComments | parser.SkipObjectResolution
	var syntax []*ast.File
	for _, name := range l.GoFiles {
		f := &file{name: filepath.Join(l.Dir, name), rel: filepath.ToSlash(filepath.Join(p.dir, name))}
		if f.text, err = os.ReadFile(f.name); err != nil {
			return nil, err
		}
		f.syntax, err = parser.ParseFile(p.fset, f.name, f.text, mode)
		if err != nil {
			return nil, err
		}
		syntax = append(syntax, f.syntax)
		p.files = append(p.files, f)
	}
	p.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{},
	}
	_, err = (&types.Config{Importer: p.importer}).Check(p.path, p.fset, syntax, p.info)
	return p, err
}
