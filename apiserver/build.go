package apiserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Version is the version of Kubernetes that the server is built from.
const Version = "v1.37.1"

// recipe is the module of the program. Its go.mod has another name here, as it would
// make the directory a module that cannot be embedded.
//
//go:embed recipe
var recipe embed.FS

// unbuilt is the line that keeps main.go out of the module that this package is in.
const unbuilt = "//go:build ignore\n"

// Build returns the path of the server's program. It builds the program first if the user's cache
// directory does not have it, which takes minutes: see the package's documentation. It needs the go
// command and, for modules that are not in the module cache, the proxies of GOPROXY. Several
// processes may build at the same time.
func Build(ctx context.Context) (string, error) {
	files, sum, err := module()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("apiserver: there is no place for the program: %w", err)
	}
	dir := filepath.Join(cache, "tidings", "kube-apiserver-"+Version+"-"+sum)
	program := filepath.Join(dir, "kube-apiserver")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := write(dir, files); err != nil {
		return "", fmt.Errorf("apiserver: write the source of the program: %w", err)
	}
	if err := compile(ctx, dir, program); err != nil {
		return "", err
	}
	return program, nil
}

// module returns the files of the program's module, and the start of their hash.
func module() (map[string][]byte, string, error) {
	files := map[string][]byte{}
	hash := sha256.New()
	for _, name := range []string{"go.mod.txt", "go.sum.txt", "main.go"} {
		data, err := fs.ReadFile(recipe, "recipe/"+name)
		if err != nil {
			return nil, "", err
		}
		data = bytes.TrimPrefix(data, []byte(unbuilt))
		files[strings.TrimSuffix(name, ".txt")] = data
		hash.Write(data)
	}
	return files, hex.EncodeToString(hash.Sum(nil)[:6]), nil
}

// write writes the files, each as a whole: another process may be reading them.
func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := replace(filepath.Join(dir, name), func(path string) error {
			return os.WriteFile(path, data, 0o644)
		}); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces a file by a file that produce writes under a temporary name.
func replace(path string, produce func(path string) error) error {
	temporary, err := os.MkdirTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	unfinished := filepath.Join(temporary, filepath.Base(path))
	err = produce(unfinished)
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	return errors.Join(err, os.RemoveAll(temporary))
}

func compile(ctx context.Context, dir, program string) error {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("apiserver: the go command, which builds the server, is not found: "+
			"add it to PATH: %w", err)
	}
	return replace(program, func(path string) error {
		build := exec.CommandContext(ctx, goCommand, "build", "-o", path, ".")
		build.Dir = dir
		// The caller's flags and workspace do not apply to this module.
		build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if out, err := build.CombinedOutput(); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("apiserver: building kube-apiserver %s was cut short, "+
					"it takes minutes the first time: %w", Version, context.Cause(ctx))
			}
			return fmt.Errorf("apiserver: go build in %s: %w\n%s", dir, err, out)
		}
		return nil
	})
}
