package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	points []*point
}

// listed is an entry of go list.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	DepOnly, Standard             bool
}

// load parses and type-checks the packages of directories.
func load(ctx context.Context, root string, dirs []string) ([]*pkg, error) {
	args := []string{"list", "-export", "-deps",
		"-json=ImportPath,Dir,Name,Export,GoFiles,DepOnly,Standard",
		"cmp", "os", "strconv", "sync/atomic"} // the helpers import these
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	var found []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := decoder.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly && !l.Standard && len(l.GoFiles) > 0 {
			found = append(found, l)
		}
	}
	packages := make([]*pkg, len(found))
	for i, l := range found {
		if packages[i], err = parse(root, l, exports); err != nil {
			return nil, err
		}
	}
	return packages, nil
}

// parse reads the files of a package.
func parse(root string, l listed, exports map[string]string) (*pkg, error) {
	p := &pkg{abs: l.Dir, path: l.ImportPath, name: l.Name, fset: token.NewFileSet()}
	var err error
	if p.dir, err = filepath.Rel(root, l.Dir); err != nil {
		return nil, err
	}
	p.importer = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
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
