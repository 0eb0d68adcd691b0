package imports_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/cmd/tidings/internal/imports"
)

// program is a module with a library and the part of client-go that they use.
var program = map[string]string{
	"go.mod": `module example.com/shop
go 1.26
require (
	example.com/lib v1.2.3
	k8s.io/client-go v0.0.0
)
replace (
	example.com/lib v1.2.3 => ./lib
	k8s.io/client-go => ./client-go
)
`,
	"client-go/go.mod":                   "module k8s.io/client-go\ngo 1.26\n",
	"client-go/tools/cache/cache.go":     "package cache\ntype Store any\nfunc NewSharedIndexInformer() Store { return nil }\nfunc NewStore() Store { return nil }\n",
	"client-go/informers/informers.go":   "package informers\nimport \"k8s.io/client-go/tools/cache\"\nfunc NewSharedInformerFactory() any { return cache.NewSharedIndexInformer() }\n",
	"client-go/informers/core/v1/pod.go": "package v1\nimport \"k8s.io/client-go/tools/cache\"\nfunc NewPodInformer() any { return cache.NewSharedIndexInformer() }\n",
	"lib/go.mod":                         "module example.com/lib\ngo 1.26\nrequire k8s.io/client-go v0.0.0\n",
	"lib/pods/pods.go":                   "package pods\nimport core \"k8s.io/client-go/informers/core/v1\"\nfunc Pods() any { return core.NewPodInformer() }\n",
	"lib/unused/unused.go":               "package unused\nimport _ \"k8s.io/client-go/tools/cache\"\n",
	"stores/stores.go":                   "package stores\nimport \"k8s.io/client-go/tools/cache\"\nvar Pods = cache.NewStore()\n",
	"stores/stores_test.go":              "package stores_test\nimport \"k8s.io/client-go/informers\"\nvar factory = informers.NewSharedInformerFactory()\n",
	"main.go":                            "package main\nimport (\n\t_ \"example.com/shop/plain\"\n\t_ \"example.com/lib/pods\"\n\tclient \"k8s.io/client-go/tools/cache\"\n)\nfunc main() { make := client.NewSharedIndexInformer; make() }\n",
	"plain/plain.go":                     "package plain\n",
}

// write writes the program, without the environment of the test's own module.
func write(t *testing.T) string {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	directory := t.TempDir()
	for name, text := range program {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestFind(t *testing.T) {
	directory := write(t)
	for patterns, want := range map[string][]string{
		"./...": {
			"{example.com/shop example.com/shop  true [tools/cache] [cache.NewSharedIndexInformer]}",
			"{example.com/shop/stores example.com/shop  true [informers tools/cache] [informers.NewSharedInformerFactory]}",
			"{example.com/lib/pods example.com/lib v1.2.3 false [informers/core/v1] [v1.NewPodInformer]}",
		},
		"./stores": {"{example.com/shop/stores example.com/shop  true [informers tools/cache] [informers.NewSharedInformerFactory]}"},
		"./plain":  nil,
	} {
		found, err := imports.Find(t.Context(), directory, patterns)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range found {
			got = append(got, fmt.Sprint(p))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: found\n%s\nwant\n%s", patterns, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestFindFails(t *testing.T) {
	directory := write(t)
	if _, err := imports.Find(t.Context(), directory, "./nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no error that names the package: %v", err)
	}
	if _, err := imports.Find(t.Context(), t.TempDir(), "./..."); err == nil || !strings.HasPrefix(err.Error(), "go list: ") {
		t.Errorf("no error without a module: %v", err)
	}
}
