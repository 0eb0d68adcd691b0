package forward

import (
	"context"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
)

// Output is the name of the generated file, in clientgo/cache.
const Output = "zz_generated.forwards.go"

// Generate returns the text of the generated file. The same client-go gives the same text, byte by
// byte.
func Generate(ctx context.Context) ([]byte, error) {
	packages, err := Load(ctx, ".", Upstream)
	if err != nil {
		return nil, err
	}
	upstream, err := packages.Import(Upstream)
	if err != nil {
		return nil, err
	}
	deprecated, err := packages.deprecated(Upstream)
	if err != nil {
		return nil, err
	}
	text, err := source(upstream, deprecated, clientGo())
	if err != nil {
		return nil, err
	}
	return finish(text, packages.importer)
}

// finish formats a text and makes sure that it compiles. It does not where a signature names a type
// that is not exported.
func finish(text []byte, imports types.Importer) ([]byte, error) {
	text, err := format.Source(text)
	if err != nil {
		return nil, fmt.Errorf("formatting the forwards: %w", err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "forwards.go", text, 0)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: imports}
	if _, err := config.Check("cache", fset, []*ast.File{file}, nil); err != nil {
		return nil, fmt.Errorf("the forwards would not compile: %w: a function with a type that is not exported belongs into the variables of tables.go", err)
	}
	return text, nil
}
