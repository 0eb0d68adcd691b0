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
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Version is the version of Kubernetes of a server without Options.Version.
const Version = "v1.37.1"

// recipe has main.go, and a directory with the module of the program for each minor version. A
// go.mod has another name here, as it would make the directory a module that cannot be embedded.
//
//go:embed recipe
var recipe embed.FS

// unbuilt is the line that keeps main.go out of the module that this package is in.
const unbuilt = "//go:build ignore\n"

// Build returns the path of the program of a server. The version is as in [Options]. Build builds
// the program first if the user's cache directory does not have it, which takes minutes: see the
// package's documentation. It needs the go command and, for modules that are not in the module
// cache, the proxies of GOPROXY. Several processes may build at the same time.
func Build(ctx context.Context, version string) (string, error) {
	m, err := newModule(version)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("apiserver: there is no place for the program: %w", err)
	}
	dir := filepath.Join(cache, "tidings", "kube-apiserver-"+m.version+"-"+m.sum)
	program := filepath.Join(dir, "kube-apiserver")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := write(dir, m.files); err != nil {
		return "", fmt.Errorf("apiserver: write the source of the program: %w", err)
	}
	if err := m.compile(ctx, dir, program); err != nil {
		return "", err
	}
	return program, nil
}

// module is the module of a program.
type module struct {
	version string // of k8s.io/kubernetes
	files   map[string][]byte
	sum     string // the start of the hash of the files
}

// required matches the line of a go.mod that requires Kubernetes.
var required = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v\S+)$`)

// newModule returns the module of a minor version, or of Version for "".
func newModule(minor string) (*module, error) {
	has := versions()
	if minor == "" {
		minor = strings.TrimPrefix(Version[:strings.LastIndex(Version, ".")], "v")
	}
	if !slices.Contains(has, minor) {
		return nil, fmt.Errorf("apiserver: there is no server of version %q: choose one of %s", minor,
			strings.Join(has, ", "))
	}
	m, hash := &module{files: map[string][]byte{}}, sha256.New()
	for _, name := range []string{minor + "/go.mod.txt", minor + "/go.sum.txt", "main.go"} {
		data, err := fs.ReadFile(recipe, "recipe/"+name)
		if err != nil {
			return nil, err
		}
		data = bytes.TrimPrefix(data, []byte(unbuilt))
		m.files[strings.TrimSuffix(path.Base(name), ".txt")] = data
		hash.Write(data)
	}
	m.version = string(required.FindSubmatch(m.files["go.mod"])[1]) // a test reads each go.mod
	m.sum = hex.EncodeToString(hash.Sum(nil)[:6])
	return m, nil
}

// versions returns the minor versions that have a module.
func versions() (minors []string) {
	entries, err := recipe.ReadDir("recipe")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, entry := range entries {
		if entry.IsDir() {
			minors = append(minors, entry.Name())
		}
	}
	return minors
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

func (m *module) compile(ctx context.Context, dir, program string) error {
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
					"it takes minutes the first time: %w", m.version, context.Cause(ctx))
			}
			return fmt.Errorf("apiserver: go build in %s: %w\n%s", dir, err, out)
		}
		return nil
	})
}
