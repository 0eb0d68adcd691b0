package imports

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

const (
	clientGo = "k8s.io/client-go/"
	tidings  = "github.com/tidings-go/tidings/"
)

// Paths are the packages of client-go for which Tidings has drop-ins.
var Paths = []string{
	clientGo + "dynamic/dynamicinformer", clientGo + "informers",
	clientGo + "metadata/metadatainformer", clientGo + "tools/cache",
}

// Package is a package that imports client-go's informers.
type Package struct {
	// Path is the import path of the package.
	Path string
	// Module is the path of its module, Version the version of the module. Main reports whether it
	// is the module of the working directory, which has no version.
	Module, Version string
	Main            bool
	// Imports are the packages of client-go, without "k8s.io/client-go/", in order.
	Imports []string
	// Makes are the constructors of informers that the package uses, in order, as in
	// "cache.NewSharedIndexInformer".
	Makes []string
}

// listed is a package in the output of `go list -json`.
type listed struct {
	Dir, ImportPath string
	DepOnly         bool // not matched by a pattern
	Module          *struct {
		Path, Version string
		Main          bool
	}
	Imports, TestImports, XTestImports []string
	GoFiles, CgoFiles                  []string
	TestGoFiles, XTestGoFiles          []string
}

// Find returns the packages that import client-go's informers, among those of patterns and all
// their dependencies: those of the main module first, then by module and path. It runs the go
// command in a directory.
func Find(ctx context.Context, directory string, patterns ...string) ([]Package, error) {
	const fields = "Dir,ImportPath,DepOnly,Module,Imports,TestImports,XTestImports,GoFiles,CgoFiles," +
		"TestGoFiles,XTestGoFiles" // the fields of listed
	args := append([]string{"list", "-deps", "-json=" + fields, "--"}, patterns...)
	list := exec.CommandContext(ctx, "go", args...)
	list.Dir = directory
	out, err := list.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(failed.Stderr) > 0 {
		err = errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var found []Package
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var l listed
		if err := decoder.Decode(&l); err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		p, err := l.examine()
		if err != nil {
			return nil, err
		}
		if len(p.Imports) > 0 {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b Package) int {
		if a.Main != b.Main {
			return map[bool]int{true: -1, false: 1}[a.Main]
		}
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.Path, b.Path))
	})
	return found, nil
}

// examine returns the package with its Imports and Makes. Find ignores a package without Imports.
func (l listed) examine() (Package, error) {
	p := Package{Path: l.ImportPath}
	if l.Module == nil || !l.Module.Main && (strings.HasPrefix(l.ImportPath, clientGo) ||
		strings.HasPrefix(l.ImportPath, tidings)) {
		return p, nil
	}
	p.Module, p.Version, p.Main = l.Module.Path, l.Module.Version, l.Module.Main
	files, imported := slices.Concat(l.GoFiles, l.CgoFiles), l.Imports
	if !l.DepOnly {
		files = slices.Concat(files, l.TestGoFiles, l.XTestGoFiles)
		imported = slices.Concat(imported, l.TestImports, l.XTestImports)
	}
	for _, path := range imported {
		if isInformers(path) {
			p.Imports = append(p.Imports, strings.TrimPrefix(path, clientGo))
		}
	}
	slices.Sort(p.Imports)
	p.Imports = slices.Compact(p.Imports)
	if len(p.Imports) == 0 {
		return p, nil
	}
	var err error
	p.Makes, err = constructors(l.Dir, files)
	return p, err
}

// isInformers reports whether a path is one of Paths, or that of a group below informers.
func isInformers(path string) bool {
	return slices.Contains(Paths, path) || strings.HasPrefix(path, clientGo+"informers/")
}
