package migration

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

// Download returns the directory of a module in the module cache, which the go command downloads
// if it is missing. The module is a path, or path@version, and dir the directory of a main module.
func Download(ctx context.Context, dir, module string) (string, error) {
	var found struct{ Dir, Error string }
	if err := GoJSON(ctx, dir, &found, "mod", "download", "-json", module); err != nil {
		return "", err
	}
	if found.Error != "" {
		return "", errors.New(found.Error)
	}
	return found.Dir, nil
}

// CopyModule copies a module of the module cache, whose files are read-only, without its
// vendored packages.
func CopyModule(to, from string) error {
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
		return CopyFiles(filepath.Join(to, filepath.Dir(name)), filepath.Dir(path), entry.Name())
	})
}

// CopyFiles copies files of a directory into another one, which it creates.
func CopyFiles(to, from string, names ...string) error {
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

// GoJSON runs the go command in a directory and decodes its output.
func GoJSON(ctx context.Context, dir string, into any, arguments ...string) error {
	text, err := Go(ctx, dir, arguments...)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Go runs the go command in a directory and returns its output.
func Go(ctx context.Context, dir string, arguments ...string) ([]byte, error) {
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
