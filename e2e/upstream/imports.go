package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
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

// replaceImports replaces the imports of a Go file. Nothing else of it changes.
func replaceImports(name string, text []byte) ([]byte, error) {
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

// Names of the cache of controller-runtime and of its counterpart.
const (
	cachePackage   = "sigs.k8s.io/controller-runtime/pkg/cache"
	newCachePlace  = "github.com/tidings-go/tidings/ctrlruntime"
	newCacheCalled = "ctrlruntime.NewCache"
)

// replaceNewCache replaces controller-runtime's cache.New in a Go file, which goes on using other
// names of that package.
func replaceNewCache(name string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	local := ""
	for _, spec := range file.Imports {
		if spec.Path.Value == strconv.Quote(cachePackage) {
			local = "cache"
			if spec.Name != nil {
				local = spec.Name.Name
			}
		}
	}
	offset := func(at token.Pos) int { return files.Position(at).Offset }
	end := offset(file.Name.End())
	out := bytes.NewBuffer(bytes.Clone(text[:end]))
	fmt.Fprintf(out, "\n\nimport %q", newCachePlace)
	written := end
	for node := range ast.Preorder(file) {
		s, ok := node.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "New" {
			continue
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
			out.Write(text[written:offset(s.Pos())])
			out.WriteString(newCacheCalled)
			written = offset(s.End())
		}
	}
	if written == end {
		return text, nil
	}
	out.Write(text[written:])
	return out.Bytes(), nil
}

// replaceIn replaces parts of the files below directories of a module whose names have an
// ending.
func replaceIn(module string, directories []string, ending string,
	replace func(name string, text []byte) ([]byte, error)) error {
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
				return replaceFile(path, replace)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func replaceFile(path string, replace func(string, []byte) ([]byte, error)) error {
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
