package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"strings"
)

// Packages are compiled packages with everything that they import. All share one universe of types,
// so types of one can be compared with types of another. It is for one goroutine at a time.
type Packages struct {
	listed   map[string]Listed
	named    []Listed
	importer types.Importer
}

// Listed is a package as go list prints it.
type Listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	DepOnly, Standard             bool
}

// Load compiles the packages of some import paths, as the module of a directory sees them. An error
// has the message of the go command.
func Load(ctx context.Context, dir string, paths ...string) (*Packages, error) {
	arguments := append([]string{
		"list", "-C", dir, "-export", "-deps",
		"-json=ImportPath,Dir,Name,Export,GoFiles,DepOnly,Standard", "--",
	}, paths...)
	command := exec.CommandContext(ctx, "go", arguments...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(arguments, " "), err, stderr.Bytes())
	}
	p := &Packages{listed: map[string]Listed{}}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var l Listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list for %s: %w", strings.Join(paths, ", "), err)
		}
		p.listed[l.ImportPath] = l
		if !l.DepOnly && !l.Standard {
			p.named = append(p.named, l)
		}
	}
	p.importer = importer.ForCompiler(token.NewFileSet(), "gc", p.open)
	return p, nil
}

// Named returns the packages that were loaded by name, without those of the standard library.
func (p *Packages) Named() []Listed { return p.named }

// open opens the export data of a package.
func (p *Packages) open(path string) (io.ReadCloser, error) {
	l, ok := p.listed[path]
	if !ok || l.Export == "" {
		return nil, fmt.Errorf("no export data of %s: neither it nor a package that imports it was loaded", path)
	}
	return os.Open(l.Export)
}

// Import returns one of the packages, or one that they import. It has the exported names and
// the types that these need.
func (p *Packages) Import(path string) (*types.Package, error) {
	return p.importer.Import(path)
}

// deprecated returns the package-level names whose sources have a paragraph that begins with
// "Deprecated:".
func (p *Packages) deprecated(path string) (map[string]bool, error) {
	names := map[string]bool{}
	fset := token.NewFileSet()
	for _, name := range p.listed[path].GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.listed[path].Dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		markDeprecated(file, names)
	}
	return names, nil
}

// markDeprecated adds the names that a file deprecates, one by one or as a group.
func markDeprecated(file *ast.File, names map[string]bool) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil && saysDeprecated(decl.Doc) {
				names[decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if saysDeprecated(decl.Doc) || saysDeprecated(spec.Doc) {
						names[spec.Name.Name] = true
					}
				case *ast.ValueSpec:
					for _, ident := range spec.Names {
						if saysDeprecated(decl.Doc) || saysDeprecated(spec.Doc) {
							names[ident.Name] = true
						}
					}
				}
			}
		}
	}
}

func saysDeprecated(doc *ast.CommentGroup) bool {
	return strings.HasPrefix(doc.Text(), "Deprecated: ") || strings.Contains(doc.Text(), "\n\nDeprecated: ")
}
