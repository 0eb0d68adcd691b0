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

// constructors returns the constructors of informers in the files of a directory.
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

// informerNames returns the names of client-go's informer packages in a file, with the last element
// of their paths.
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

// isConstructor reports whether the function of client-go with a name makes an informer, or a
// reflector below an informer.
func isConstructor(name string) bool {
	return name == "New" || strings.HasPrefix(name, "New") &&
		(strings.Contains(name, "Informer") || strings.Contains(name, "Reflector"))
}
