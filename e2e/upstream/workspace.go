package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tidings-go/tidings/internal/tool/migration"
)

// e2e is the module of these tests.
const e2e = migration.Tidings + "/e2e"

// prepare copies a suite's module into a directory and edits its go.mod, or one beside it, so
// that it is built with this repository. It replaces imports unless original is set. It returns
// the directory of the main module.
func prepare(ctx context.Context, s suite, dir string, original bool) (main string, err error) {
	root, err := rootOf(ctx)
	if err != nil {
		return "", err
	}
	module := s.module
	if s.version != "" {
		module += "@" + s.version
	}
	from, err := migration.Download(ctx, filepath.Join(root, "e2e"), module)
	if err != nil {
		return "", err
	}
	main = filepath.Join(dir, "module")
	if err := migration.CopyModule(main, from); err != nil {
		return "", err
	}
	if s.tutorial != "" {
		if main, err = makeProject(ctx, dir, main, s.tutorial); err != nil {
			return "", err
		}
	}
	if !original {
		replace := migration.Replace(migration.Imports)
		if s.newCache {
			replace = migration.NewCache
		}
		err := errors.Join(replace.In(main, s.trees, ".go"), replace.In(main, s.tests, "_test.go"))
		if err != nil {
			return "", err
		}
	}
	edits := []string{
		"mod", "edit", "-replace=" + migration.Tidings + "=" + root,
		"-require=" + migration.Tidings + "@v0.0.0-00010101000000-000000000000",
	}
	if s.newCache {
		edits = append(edits, "-replace="+migration.NewCacheModule+"="+filepath.Join(root, "ctrlruntime"),
			"-require="+migration.NewCacheModule+"@v0.0.0-00010101000000-000000000000")
	}
	for _, part := range s.parts {
		edits = append(edits, "-dropreplace="+part, "-require="+part+"@"+s.version)
	}
	if s.version == "" {
		// The module's own go.mod may name directories that only its repository has.
		edits = append(edits, "-module=upstream", "-replace="+s.module+"="+main)
		main = filepath.Join(dir, "main")
		if err := migration.CopyFiles(main, filepath.Join(root, "e2e"), "go.mod", "go.sum"); err != nil {
			return "", err
		}
	}
	_, err = migration.Go(ctx, main, edits...)
	return main, err
}

// rootOf returns the directory of this repository. The working directory has to be in the
// module of the tests.
func rootOf(ctx context.Context) (string, error) {
	var found struct{ Path, Dir string }
	if err := migration.GoJSON(ctx, ".", &found, "list", "-m", "-json"); err != nil {
		return "", err
	}
	if found.Path != e2e {
		return "", fmt.Errorf("the working directory is in module %s: run it in the directory e2e",
			found.Path)
	}
	return filepath.Dir(found.Dir), nil
}
