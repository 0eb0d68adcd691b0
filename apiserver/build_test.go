package apiserver

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVersionsAgree: the server is of the release whose modules this project has, and all parts of
// a server are of one release.
func TestVersionsAgree(t *testing.T) {
	for _, minor := range append(versions(), "") {
		m, err := newModule(minor)
		if err != nil {
			t.Fatal(err)
		}
		if minor == "" && m.version != Version || !strings.HasPrefix(m.version, "v"+minor) {
			t.Errorf("%q has the module of %s", minor, m.version)
		}
		staging := "v0" + strings.TrimPrefix(m.version, "v1")
		replaced := regexp.MustCompile(`(?m)^\t(k8s\.io/\S+) => (\S+) (\S+)$`).
			FindAllStringSubmatch(string(m.files["go.mod"]), -1)
		if len(replaced) == 0 {
			t.Errorf("%s: go.mod replaces nothing", m.version)
		}
		for _, r := range replaced {
			if r[1] != r[2] || r[3] != staging {
				t.Errorf("%s: %s is replaced by %s %s, want %s of itself", m.version, r[1], r[2], r[3], staging)
			}
		}
	}
	ours, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if staging := "v0" + strings.TrimPrefix(Version, "v1"); !strings.Contains(string(ours), "k8s.io/client-go "+staging+"\n") {
		t.Errorf("this module does not require k8s.io/client-go %s", staging)
	}
}

func TestTheProgramIsOneThatGoBuilds(t *testing.T) {
	for _, minor := range versions() {
		m, err := newModule(minor)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.files["go.sum"]) == 0 || strings.Contains(string(m.files["main.go"]), "go:build") {
			t.Errorf("%s: go.sum is missing, or main.go has a constraint that leaves it out", minor)
		}
	}
}

func TestAnotherVersionNamesThoseThatThereAre(t *testing.T) {
	_, err := New(t.Context(), Options{Version: "1.9"})
	if err == nil || !strings.Contains(err.Error(), `"1.9": choose one of 1.35, 1.36, 1.37`) {
		t.Errorf("got %v", err)
	}
}

func TestReplaceLeavesNothingHalfDone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	failure := errors.New("the disk is full")
	err := replace(path, func(unfinished string) error {
		return errors.Join(os.WriteFile(unfinished, []byte("half"), 0o600), failure)
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	if err := replace(path, func(unfinished string) error { return os.WriteFile(unfinished, []byte("whole"), 0o600) }); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "whole" || len(entries) != 1 {
		t.Errorf("the file has %q (%v) and %d entries are there, want the whole one alone", data, err, len(entries))
	}
}

func TestOutputKeepsTheEnd(t *testing.T) {
	var o output
	for range 3 {
		if _, err := o.Write([]byte(strings.Repeat("x", outputLimit/2))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Write([]byte("the end")); err != nil {
		t.Fatal(err)
	}
	if got := o.String(); len(got) != outputLimit || !strings.HasSuffix(got, "the end") {
		t.Errorf("%d bytes are kept, ending in %q", len(got), got[len(got)-10:])
	}
}
