package main

import (
	"bytes"
	"fmt"
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

// replaceIn replaces the imports of the files below directories of a module whose names
// have an ending.
func replaceIn(module string, directories []string, ending string) error {
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
				return replaceFile(path)
			})
		if err != nil {
			return err
		}
	}
	return nil
}

func replaceFile(path string) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, err := replaceImports(path, before)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return os.WriteFile(path, after, 0o644)
}
