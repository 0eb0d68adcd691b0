package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// constructors returns the constructors of informers that files of a directory use.
func constructors(directory string, files []string) (found []string, err error) {
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(directory, name), nil,
			parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading the imports: %w", err)
		}
		names := informerNames(file)
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && isConstructor(selector.Sel.Name) {
				if from, ok := selector.X.(*ast.Ident); ok && names[from.Name] != "" {
					found = append(found, names[from.Name]+"."+selector.Sel.Name)
				}
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
		imported := strings.Trim(spec.Path.Value, "\"`")
		name := path.Base(imported)
		switch {
		case !isInformers(imported):
		case spec.Name != nil:
			names[spec.Name.Name] = name
		default:
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
