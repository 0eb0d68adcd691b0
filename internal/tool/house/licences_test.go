package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// licences are the licences that a module may have, each with a sentence that only its text has.
// The Mozilla licence is for modules that only tests import: no program that uses this module
// contains them.
var licences = []struct{ name, sentence string }{
	{"MPL-2.0 (tests)", "Mozilla Public License Version 2.0"},
	{"Apache-2.0", "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"},
	{"Apache-2.0", "http://www.apache.org/licenses/LICENSE-2.0"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining"},
	{"BSD-3-Clause", "used to endorse or promote products derived"},
	{"BSD-2-Clause", "Redistributions of source code must retain the above copyright"},
	{"ISC", "distribute this software for any purpose with or without fee"},
}

// licenceOf returns the names of the licences whose text a module's directory has.
func licenceOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "LICEN[SC]E*"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(data)), " ")
		for _, l := range licences {
			// The text of BSD-3-Clause contains the sentence of BSD-2-Clause.
			covered := l.name == "BSD-2-Clause" && slices.Contains(found, "BSD-3-Clause")
			if strings.Contains(text, l.sentence) && !covered && !slices.Contains(found, l.name) {
				found = append(found, l.name)
			}
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// modules returns the directories of the modules that packages come from, by path.
func modules(t *testing.T, arguments ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	out := goCommand(t, append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}"}, arguments...)...)
	for line := range strings.Lines(out) {
		if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name != module {
			found[name] = dir
		}
	}
	return found
}

// TestLicences asks that DEPENDENCIES.md has the licence of every module that is
// compiled into a package or a test of this one, and that it is one of those above.
func TestLicences(t *testing.T) {
	enterRoot(t)
	listed := map[string]string{}
	_, table, _ := strings.Cut(readFile(t, "DEPENDENCIES.md"), "## Licences")
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1) {
		for name := range strings.SplitSeq(row[2], ", ") {
			listed[strings.Trim(name, "`")] = row[1]
		}
	}
	programs, all := modules(t, "./..."), modules(t, "-test", "./...")
	for name, dir := range all {
		has := licenceOf(t, dir)
		_, inProgram := programs[name]
		switch {
		case has == "":
			t.Errorf("%s has no licence that internal/tool/house/licences_test.go knows: look at %s",
				name, dir)
		case strings.Contains(has, "(tests)") && inProgram:
			t.Errorf("%s is %s, and programs contain it", name, has)
		case listed[name] != has:
			t.Errorf("DEPENDENCIES.md, Licences: %s is listed under %q and has %q",
				name, listed[name], has)
		}
	}
	for name := range listed {
		if _, needed := all[name]; !needed && strings.Contains(name, "/") {
			t.Errorf("DEPENDENCIES.md, Licences: no package or test needs %s", name)
		}
	}
}
