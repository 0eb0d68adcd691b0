// Command release checks whether a version of this repository can be released, and builds what
// comes with it. It changes nothing in the repository: the tags are made by hand.
//
//	changelog ─▶ modules and tags ─▶ differences of the API ─▶ programs, archives, SBOMs, checksums
//
// In these steps:
//
//  1. The working tree has no uncommitted changes, and CHANGELOG.md a section of the version.
//  2. No module of the release needs a replace, which its users would not have, and none of its
//     tags exists yet. The tags are printed.
//  3. The commit is cloned into a temporary directory, and tagged there.
//  4. apidiff compares the clone with the last version. A patch version changes no API.
//  5. The command is built in the clone, for each platform, without cgo and paths. Its archive has
//     the licences of everything in it, and no time but the commit's, so that the same commit and
//     the same Go give the same bytes. cyclonedx-gomod lists the modules of each program.
//
// The first four steps all run, also after one that fails. The last one, which takes minutes, runs if
// none has failed.
//
// # Concurrency properties
//
// One step runs after the other.
//
// # Memory
//
// A program and its archive are held at a time, which is less than 200 MB.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// The tools, with their versions.
const (
	apidiff   = "golang.org/x/exp/cmd/apidiff@v0.0.0-20260410095643-746e56fc9e2f"
	cyclonedx = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
)

// versionForm matches versions, with the number of the patch.
var versionForm = regexp.MustCompile(`^v(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(0|[1-9]\d*)$`)

// release is a version that is checked.
type release struct {
	version string
	dir     string // the root of the repository
	out     string // the directory of the archives
	since   string // the commit to compare the API with; "" is the last version
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := release{dir: "."}
	flag.StringVar(&r.out, "out", "bin/release", "the directory of the archives")
	flag.StringVar(&r.since, "since", "",
		"the commit to compare the API with (default the last version)")
	flag.Parse()
	r.version = flag.Arg(0)
	if err := r.check(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "\n%s cannot be released:\n%v\n", r.version, err)
		os.Exit(1)
	}
	fmt.Printf("\n%s can be released. Its archives are in %s.\n", r.version, r.out)
}

// check takes all steps, and returns what stands against the release.
func (r *release) check(ctx context.Context) error {
	form := versionForm.FindStringSubmatch(r.version)
	if form == nil {
		return fmt.Errorf("%q is no version: write it as in make release VERSION=v0.1.0", r.version)
	}
	errs := []error{r.checkTree(ctx), r.checkChangelog(), r.checkModules(ctx)}
	clone, err := os.MkdirTemp("", "tidings-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(clone)
	if err := r.clone(ctx, clone, "HEAD", r.version); err != nil {
		return errors.Join(append(errs, err)...)
	}
	errs = append(errs, r.compare(ctx, clone, form[1] != "0"))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.build(ctx, clone)
}

// checkTree returns an error for changes that are not committed.
func (r *release) checkTree(ctx context.Context) error {
	changes, err := output(ctx, r.dir, "git", "status", "--porcelain")
	if err == nil && changes != "" {
		err = fmt.Errorf("the working tree has changes, which a release does not: commit them\n%s",
			changes)
	}
	return err
}

// checkChangelog returns an error if the changelog has no section of the version.
func (r *release) checkChangelog() error {
	text, err := os.ReadFile(filepath.Join(r.dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.version, "v")
	heading := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(number) + `\] - \d{4}-\d\d-\d\d$`)
	at := heading.FindIndex(text)
	if at == nil {
		return fmt.Errorf(`CHANGELOG.md has no line "## [%s] - YYYY-MM-DD": `+
			`put it below "## [Unreleased]"`, number)
	}
	section, _, _ := strings.Cut(string(text[at[1]:]), "\n## ")
	if !strings.Contains(section, "\n- ") {
		return fmt.Errorf("CHANGELOG.md names no change in the section [%s]", number)
	}
	return nil
}

// clone clones a commit, and gives it a tag unless the tag is "".
func (r *release) clone(ctx context.Context, dir, commit, tag string) error {
	hash, err := output(ctx, r.dir, "git", "rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return err
	}
	root, err := filepath.Abs(r.dir)
	if err != nil {
		return err
	}
	steps := [][]string{
		{"clone", "--quiet", "--no-checkout", root, "."},
		{"-c", "advice.detachedHead=false", "checkout", "--quiet", hash},
	}
	if tag != "" {
		steps = append(steps, []string{"tag", "--force", tag})
	}
	for _, step := range steps {
		if _, err := output(ctx, dir, "git", step...); err != nil {
			return err
		}
	}
	return nil
}

// output runs a command and returns its trimmed output. The error has what the command said.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out, failure strings.Builder
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, &out, &failure
	// The caller's flags and workspace do not apply.
	c.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(c.Args, " "), err, out.String(),
			failure.String())
	}
	return strings.TrimSpace(out.String()), nil
}
