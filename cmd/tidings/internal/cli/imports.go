package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidings-go/tidings/cmd/tidings/internal/imports"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

func newImports(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "imports [PACKAGE…] [flags]",
		Short: "List the packages of a Go program that import client-go's informers",
		Long: `Imports lists the packages of the Go module in this directory, and of the modules that it uses,
that import client-go's informers: tools/cache, informers, dynamic/dynamicinformer or
metadata/metadatainformer. After a move to Tidings these stay with client-go.

A package with constructors, such as cache.NewSharedIndexInformer, makes informers of client-go. One
without constructors uses types and functions, which Tidings shares with client-go.

It runs the go command, and reads the packages that the names stand for with all that they import,
and the tests of the former. Without names these are the packages of the module, ./... A module in
a directory below is another module: run the command there, too.`,
		Example: `  # the module in this directory
  tidings imports

  # one program of it
  tidings imports ./cmd/controller`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"./..."}
			}
			found, err := imports.Find(cmd.Context(), "", args...)
			if errors.Is(err, exec.ErrNotFound) {
				return fmt.Errorf("%w: install Go, or add its bin directory to PATH", err)
			}
			if err != nil {
				return fmt.Errorf("%w: run it in the directory of a Go module that builds", err)
			}
			if len(found) == 0 {
				c.screen().Note("tidings: no package imports client-go's informers")
				return nil
			}
			return c.screen().Print(importsTable(found))
		},
	}
}

func importsTable(found []imports.Package) string {
	var rows [][]string
	for i, p := range found {
		if i == 0 || p.Module != found[i-1].Module {
			version := p.Version
			if p.Main {
				version = "(this module)"
			}
			rows = append(rows, []string{p.Module + " " + version})
		}
		what := strings.Join(p.Makes, ", ")
		if what == "" {
			what = "no constructor, of " + strings.Join(p.Imports, ", ")
		}
		rows = append(rows, []string{"  " + p.Path, what})
	}
	return view.Columns(rows)
}
