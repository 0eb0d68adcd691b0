package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// says checks that an error has a part, or that there is no error for "".
func says(t *testing.T, err error, part string) {
	t.Helper()
	if (err == nil) != (part == "") || err != nil && !strings.Contains(err.Error(), part) {
		t.Errorf("got %v, want %q", err, part)
	}
}

func TestVersionsHaveThreeNumbers(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v0.1", "v0.1.0-rc.1", "v01.0.0"} {
		r := release{version: version, dir: t.TempDir()}
		says(t, r.check(t.Context()), "is no version: write it as in make release VERSION=v0.1.0")
	}
}

func TestChangelogHasTheVersion(t *testing.T) {
	const missing = `no line "## [0.1.0] - YYYY-MM-DD"`
	for text, want := range map[string]string{
		"## [Unreleased]\n\n- a\n":          missing,
		"## [0.1.0]\n\n- a\n":               missing,
		"## [0.1.01] - 2026-12-01\n\n- a\n": missing,
		"## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\n## [0.0.9] - 2026-11-01\n- a": "no change in the section [0.1.0]",
		"## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n\n### Added\n\n- a\n":           "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		says(t, (&release{version: "v0.1.0", dir: dir}).checkChangelog(), want)
	}
}

func TestUsersOfAModuleDoNotMissAReplacement(t *testing.T) {
	const head = `{"Module": {"Path": "example.com/a/b"}, "Require": [{"Path": "example.com/a", "Version": "v0.1.0"}], `
	for text, want := range map[string]string{
		head + `"Replace": null}`: "",
		head + `"Replace": [{"Old": {"Path": "example.com/a"}, "New": {"Path": "../"}}]}`:                                        "",
		head + `"Replace": [{"Old": {"Path": "example.com/c"}, "New": {"Path": "../"}}]}`:                                        "replaces example.com/c",
		head + `"Replace": [{"Old": {"Path": "example.com/a"}, "New": {"Path": "fork.example/a"}}]}`:                             "replaces example.com/a",
		strings.Replace(head, "v0.1.0", "v0.0.0", 1) + `"Replace": [{"Old": {"Path": "example.com/a"}, "New": {"Path": ".."}}]}`: "requires example.com/a v0.0.0",
	} {
		var m module
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		says(t, m.check("v0.1.0"), want)
	}
}

func TestArchivesAreReproducible(t *testing.T) {
	files := []file{{"tidings", 0o755, []byte("program")}, {"LICENSES", 0o644, []byte("texts")}}
	at := time.Unix(1_800_000_000, 0)
	first, err := pack(at, files...)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := pack(at.UTC(), files...); err != nil || !bytes.Equal(first, second) {
		t.Errorf("two archives of the same files differ: %v", err)
	}
	inner, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	reader := tar.NewReader(inner)
	for _, f := range files {
		header, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil || header.Name != f.name || header.Mode != f.mode || !bytes.Equal(data, f.data) || !header.ModTime.Equal(at) {
			t.Errorf("the archive has %v with %q (%v)", header, data, err)
		}
	}
	if _, err := reader.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the files: %v", err)
	}
}

func TestLicencesOfEveryModule(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a/LICENSE.txt": "licence of a", "a/NOTICE": "notice of a", "b/README": "none"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	line := "example.com/a\t" + filepath.Join(dir, "a") + "\n"
	text, err := licencesOf(line + line)
	if err != nil || string(text) != "==== example.com/a: LICENSE.txt\n\nlicence of a\n==== example.com/a: NOTICE\n\nnotice of a\n" {
		t.Errorf("got %q, %v", text, err)
	}
	_, err = licencesOf(line + "example.com/b\t" + filepath.Join(dir, "b"))
	says(t, err, "example.com/b has no licence")
}

func TestChecksumsAreThoseOfSha256sum(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.tar.gz"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeChecksums(dir); err != nil {
		t.Fatal(err)
	}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.tar.gz\n"
	if got, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS")); err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
}
