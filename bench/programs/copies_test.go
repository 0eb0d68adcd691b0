package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/tool/migration"
)

// TestCopies makes both copies of a module, of which the one differs from the other by its imports.
func TestCopies(t *testing.T) {
	module, root := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "bench"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(root, "bench"), "go.mod", "module "+migration.Tidings+"/bench\n\n"+
		"require k8s.io/client-go v0.37.1\n\nrequire sigs.k8s.io/controller-runtime v0.25.2\n")
	write(module, "go.mod", `module example.com/p

require (
	k8s.io/api v0.36.2
	k8s.io/apimachinery v0.38.0
	k8s.io/klog/v2 v2.140.0
	k8s.io/utils v0.0.0-20260626114624-be93311217bd
	sigs.k8s.io/controller-runtime v0.23.3
)

replace k8s.io/api => ../api
`)
	const text = "package main\n\nimport \"k8s.io/client-go/informers\"\n\nvar _ informers.SharedInformerFactory\n"
	write(module, "main.go", text)
	c := &copies{
		program: program{trees: []string{"."}, main: ".", missing: []string{"example.com/gone"}},
		root:    root, dirs: map[variant]string{before: t.TempDir(), after: t.TempDir()},
	}
	read := func(v variant, name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(c.dirs[v], name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, v := range variants {
		if err := c.copy(t.Context(), v, module); err != nil {
			t.Fatal(err)
		}
		required := read(v, "go.mod")
		for _, want := range []string{
			"k8s.io/api v0.37.1", "k8s.io/apimachinery v0.38.0", "k8s.io/utils v0.0.0-2026",
			"k8s.io/klog/v2 v2.140.0", "sigs.k8s.io/controller-runtime v0.25.2",
			migration.Tidings + " v0.0.0", migration.Tidings + " => " + root, "example.com/gone => ",
		} {
			if !strings.Contains(required, want) {
				t.Errorf("%s: go.mod lacks %q:\n%s", v, want, required)
			}
		}
		if strings.Contains(required, "../api") {
			t.Errorf("%s: go.mod has a directory that the module lacks:\n%s", v, required)
		}
		if !strings.Contains(read(v, "programs_heap.go"), "package main") {
			t.Errorf("%s: the file that prints the live heap is missing", v)
		}
	}
	if got := read(before, "main.go"); got != text {
		t.Errorf("before: the program is\n%s", got)
	}
	want := strings.Replace(text, "k8s.io/client-go/informers", "github.com/tidings-go/tidings/clientgo/informers", 1)
	if got := read(after, "main.go"); got != want {
		t.Errorf("after: the program is\n%s\nwant\n%s", got, want)
	}
}
