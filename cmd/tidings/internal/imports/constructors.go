package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// constructors returns the constructors of informers that files of a directory use.
func constructors(directory string, files []string) ([]string, error) {
	var found []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(directory, name), nil,
			parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading the imports: %w", err)
		}
		names := informerNames(file)
		if len(names) == 0 {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, ok := selector.X.(*ast.Ident)
			if ok && names[from.Name] != "" && isConstructor(selector.Sel.Name) {
				found = append(found, names[from.Name]+"."+selector.Sel.Name)
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// informerNames returns the names by which a file knows client-go's informers, with the last
// element of their paths.
func informerNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !isInformers(imported) {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			names[spec.Name.Name] = name
		} else {
			names[name] = name
		}
	}
	return names
}

// isConstructor reports whether a function of client-go makes informers, or the reflector below
// one.
func isConstructor(name string) bool {
	return name == "New" || strings.HasPrefix(name, "New") &&
		(strings.Contains(name, "Informer") || strings.Contains(name, "Reflector"))
}
