package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// tidings is the module of this repository, e2e that of these tests.
const (
	tidings = "github.com/tidings-go/tidings"
	e2e     = tidings + "/e2e"
)

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
	var found struct{ Dir, Error string }
	if err := goJSON(ctx, filepath.Join(root, "e2e"), &found, "mod", "download", "-json",
		module); err != nil {
		return "", err
	}
	if found.Error != "" {
		return "", errors.New(found.Error)
	}
	main = filepath.Join(dir, "module")
	if err := copyModule(main, found.Dir); err != nil {
		return "", err
	}
	if s.tutorial != "" {
		if main, err = makeProject(ctx, dir, main, s.tutorial); err != nil {
			return "", err
		}
	}
	if !original {
		replace := replaceImports
		if s.newCache {
			replace = replaceNewCache
		}
		err := errors.Join(replaceIn(main, s.trees, ".go", replace),
			replaceIn(main, s.tests, "_test.go", replace))
		if err != nil {
			return "", err
		}
	}
	edits := []string{
		"mod", "edit", "-replace=" + tidings + "=" + root,
		"-require=" + tidings + "@v0.0.0-00010101000000-000000000000",
	}
	if s.newCache {
		edits = append(edits, "-replace="+newCachePlace+"="+filepath.Join(root, "ctrlruntime"),
			"-require="+newCachePlace+"@v0.0.0-00010101000000-000000000000")
	}
	for _, part := range s.parts {
		edits = append(edits, "-dropreplace="+part, "-require="+part+"@"+s.version)
	}
	if s.version == "" {
		// The module's own go.mod may name directories that only its repository has.
		edits = append(edits, "-module=upstream", "-replace="+s.module+"="+main)
		main = filepath.Join(dir, "main")
		if err := copyFiles(main, filepath.Join(root, "e2e"), "go.mod", "go.sum"); err != nil {
			return "", err
		}
	}
	_, err = goOutput(ctx, main, edits...)
	return main, err
}

// rootOf returns the directory of this repository. The working directory has to be in the
// module of the tests.
func rootOf(ctx context.Context) (string, error) {
	var found struct{ Path, Dir string }
	if err := goJSON(ctx, ".", &found, "list", "-m", "-json"); err != nil {
		return "", err
	}
	if found.Path != e2e {
		return "", fmt.Errorf("the working directory is in module %s: run it in the directory e2e",
			found.Path)
	}
	return filepath.Dir(found.Dir), nil
}

// copyModule copies a module of the module cache, whose files are read-only, without its
// vendored packages.
func copyModule(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && name == "vendor":
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case name == "go.work" || name == "go.work.sum" || !entry.Type().IsRegular():
			return nil
		}
		return copyFiles(filepath.Join(to, filepath.Dir(name)), filepath.Dir(path), entry.Name())
	})
}

// copyFiles copies files of a directory into another one, which it creates.
func copyFiles(to, from string, names ...string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// goJSON runs the go command in a directory and decodes its output.
func goJSON(ctx context.Context, dir string, into any, arguments ...string) error {
	text, err := goOutput(ctx, dir, arguments...)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// goOutput runs the go command in a directory and returns its output.
func goOutput(ctx context.Context, dir string, arguments ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", arguments...)
	c.Dir = dir
	var failure bytes.Buffer
	c.Stderr = &failure
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go %v: %w\n%s%s", arguments, err, text, failure.Bytes())
	}
	return text, nil
}
