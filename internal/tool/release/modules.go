package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// published are the directories of the modules that a release has: the other modules are tests,
// benchmarks and examples.
var published = []string{".", "ctrlruntime"}

// checkModules checks the modules of the release, and prints their tags.
func (r *release) checkModules(ctx context.Context) error {
	var errs []error
	for _, dir := range published {
		m, err := readModule(ctx, filepath.Join(r.dir, dir))
		if err != nil {
			return err
		}
		errs = append(errs, m.check(r.version))
		tag := path.Join(dir, r.version)
		present, err := output(ctx, r.dir, "git", "tag", "--list", tag)
		if err == nil && present != "" {
			err = fmt.Errorf("the tag %s exists: choose the next version", tag)
		}
		if err == nil {
			fmt.Printf("to be tagged: git tag %s\n", tag)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// module is a go.mod, as `go mod edit -json` prints it.
type module struct {
	Module  struct{ Path string }
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func readModule(ctx context.Context, dir string) (*module, error) {
	text, err := output(ctx, dir, "go", "mod", "edit", "-json")
	if err != nil {
		return nil, err
	}
	m := new(module)
	return m, json.Unmarshal([]byte(text), m)
}

// check returns an error for each replacement without which users would have something else. The
// directory of a sibling may stay, if the module requires the sibling's version of this release.
func (m *module) check(version string) error {
	var errs []error
	for _, r := range m.Replace {
		if !strings.HasPrefix(r.New.Path, ".") || !strings.HasPrefix(m.Module.Path, r.Old.Path+"/") {
			errs = append(errs, fmt.Errorf("%s replaces %s, which it does not for its users: require what "+
				"they are to have", m.Module.Path, r.Old.Path))
			continue
		}
		for _, required := range m.Require {
			if required.Path == r.Old.Path && required.Version != version {
				errs = append(errs, fmt.Errorf("%s requires %s %s, which its users would ask for: require %s",
					m.Module.Path, required.Path, required.Version, version))
			}
		}
	}
	return errors.Join(errs...)
}

// compare prints how the API differs from the last version's. Changes that break users are an
// error in a patch version.
func (r *release) compare(ctx context.Context, clone string, isPatch bool) error {
	since := r.since
	if since == "" {
		tags, err := output(ctx, r.dir, "git", "tag", "--list", "--merged", "HEAD",
			"--sort=-version:refname", "v*")
		if err != nil {
			return err
		}
		if since, _, _ = strings.Cut(tags, "\n"); since == "" {
			fmt.Println("API: there is no earlier version to compare with")
			return nil
		}
	}
	old, err := os.MkdirTemp("", "tidings-before-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(old)
	if err := r.clone(ctx, old, since, ""); err != nil {
		return err
	}
	var errs []error
	for _, dir := range published {
		m, err := readModule(ctx, filepath.Join(clone, dir))
		if err != nil {
			return err
		}
		before, after := filepath.Join(old, "api"), filepath.Join(clone, "api")
		for api, at := range map[string]string{before: old, after: clone} {
			_, err := output(ctx, filepath.Join(at, dir),
				"go", "run", apidiff, "-m", "-w", api, m.Module.Path)
			if err != nil {
				return err
			}
		}
		text, err := output(ctx, clone, "go", "run", apidiff, "-m", "-incompatible", before, after)
		if err != nil {
			return err
		}
		if text == "" {
			text = "no change breaks users"
		} else if isPatch {
			errs = append(errs, fmt.Errorf("the API of %s has changed since %s, which a patch version does "+
				"not: release a minor version", m.Module.Path, since))
		}
		fmt.Printf("API of %s since %s:\n%s\n", m.Module.Path, since, text)
		errs = append(errs, os.Remove(before), os.Remove(after))
	}
	return errors.Join(errs...)
}
