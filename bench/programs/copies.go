package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidings-go/tidings/internal/tool/migration"
)

//go:embed testdata/*.go
var sources embed.FS

// copies are the two copies of a program's module.
type copies struct {
	program
	root    string // of this repository
	dirs    map[variant]string
	results map[variant][]figures
}

// prepare makes the copies of a program.
func prepare(ctx context.Context, p program) (*copies, error) {
	var found struct{ Path, Dir string }
	if err := migration.GoJSON(ctx, ".", &found, "list", "-m", "-json"); err != nil {
		return nil, err
	}
	if found.Path != migration.Tidings+"/bench" {
		return nil, fmt.Errorf("the working directory is in module %s: run it in the directory bench",
			found.Path)
	}
	from, err := migration.Download(ctx, found.Dir, p.module+"@"+p.version)
	if err != nil {
		return nil, err
	}
	place, err := home()
	if err != nil {
		return nil, err
	}
	c := &copies{
		program: p, root: filepath.Dir(found.Dir),
		dirs: map[variant]string{}, results: map[variant][]figures{},
	}
	for _, v := range variants {
		c.dirs[v] = filepath.Join(place, filepath.Base(p.module), string(v))
		if err := c.copy(ctx, v, from); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// copy makes one of the copies.
func (c *copies) copy(ctx context.Context, v variant, from string) error {
	dir := c.dirs[v]
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := migration.CopyModule(dir, from); err != nil {
		return err
	}
	if v == after {
		replace := migration.Replace(migration.Imports)
		if c.newCache {
			replace = migration.NewCache
		}
		if err := replace.In(dir, c.trees, ".go"); err != nil {
			return err
		}
	}
	if err := c.addSource(dir, "heap.go"); err != nil {
		return err
	}
	if c.source != "" {
		if err := c.addSource(dir, c.source); err != nil {
			return err
		}
	}
	return c.require(ctx, dir)
}

// addSource adds a file of testdata to the main package of a copy.
func (c *copies) addSource(dir, name string) error {
	text, err := sources.ReadFile("testdata/" + name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, c.main), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, c.main, "programs_"+name), text, 0o644)
}

// require edits the go.mod of a copy.
func (c *copies) require(ctx context.Context, dir string) error {
	edits := []string{"mod", "edit"}
	own := map[string]string{migration.Tidings: c.root}
	if c.newCache {
		own[migration.NewCacheModule] = filepath.Join(c.root, "ctrlruntime")
	}
	for module, place := range own {
		edits = append(edits, "-replace="+module+"="+place,
			"-require="+module+"@v0.0.0-00010101000000-000000000000")
	}
	theirs, err := readMod(ctx, dir)
	if err != nil {
		return err
	}
	ours, err := readMod(ctx, filepath.Join(c.root, "bench"))
	if err != nil {
		return err
	}
	for module, version := range theirs.later(ours) {
		edits = append(edits, "-require="+module+"@"+version)
	}
	for _, r := range theirs.Replace {
		if r.New.Version == "" { // a directory of the module's repository, which the module lacks
			edits = append(edits, "-dropreplace="+r.Old.Path)
		}
	}
	for i, module := range c.missing {
		place := filepath.Join(dir, fmt.Sprintf("programs_missing%d", i))
		if err := os.Mkdir(place, 0o755); err != nil {
			return err
		}
		text := []byte("module " + module + "\n")
		if err := os.WriteFile(filepath.Join(place, "go.mod"), text, 0o644); err != nil {
			return err
		}
		edits = append(edits, "-replace="+module+"="+place)
	}
	_, err = migration.Go(ctx, dir, edits...)
	return err
}

// goMod is what `go mod edit -json` prints.
type goMod struct {
	Require []struct{ Path, Version string }
	Replace []struct {
		Old struct{ Path string }
		New struct{ Version string }
	}
}

func readMod(ctx context.Context, dir string) (m goMod, err error) {
	text, err := migration.Go(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

// version returns the required version of a module, or "".
func (m goMod) version(module string) string {
	for _, r := range m.Require {
		if r.Path == module {
			return r.Version
		}
	}
	return ""
}

// later returns the modules that m requires in an older version than ours, with the versions of
// ours: those that Kubernetes releases together, and controller-runtime.
func (m goMod) later(ours goMod) map[string]string {
	const clientGo, controllerRuntime = "k8s.io/client-go", "sigs.k8s.io/controller-runtime"
	all := map[string]string{}
	for _, r := range m.Require {
		want := ours.version(clientGo)
		switch {
		case r.Path == controllerRuntime:
			want = ours.version(controllerRuntime)
		case !strings.HasPrefix(r.Path, "k8s.io/") || strings.HasPrefix(r.Version, "v0.0.") ||
			!strings.HasPrefix(r.Version, "v0."):
			continue // such as k8s.io/utils, which has a version of its own
		}
		if r.Version < want { // their minor versions have two digits
			all[r.Path] = want
		}
	}
	return all
}

// modules lets the go command complete go.mod and go.sum.
const modules = "-mod=mod"

// build builds both variants.
func (c *copies) build(ctx context.Context) error {
	for _, v := range variants {
		log.Printf("%s, %s: go build", c.name, v)
		_, err := migration.Go(ctx, c.dirs[v], "build", modules, "-buildvcs=false",
			"-o", c.binary(v), "./"+c.main)
		if err != nil {
			return err
		}
		text, err := migration.Go(ctx, c.dirs[v], "list", modules, "-m",
			"-f", "{{.Path}} {{.Version}}", "k8s.io/client-go")
		if err != nil {
			return err
		}
		log.Printf("%s, %s: built with %s", c.name, v, strings.TrimSpace(string(text)))
	}
	return nil
}

// binary returns the file of a variant.
func (c *copies) binary(v variant) string {
	return filepath.Join(filepath.Dir(c.dirs[v]), string(v)+".bin")
}
