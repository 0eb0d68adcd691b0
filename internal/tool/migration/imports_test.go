package migration

import (
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	const text = `// Package p quotes "k8s.io/client-go/informers".
package p

import (
	"fmt"

	coreinformers "k8s.io/client-go/informers/core/v1"
	externalinformers "k8s.io/client-go/informers" // named
	"k8s.io/client-go/tools/cache"
)

var path = "k8s.io/client-go/tools/cache"
`
	want := strings.NewReplacer(
		`externalinformers "k8s.io/client-go/informers" // named`, `externalinformers "github.com/tidings-go/tidings/clientgo/informers" // named`,
		"\t\"k8s.io/client-go/tools/cache\"\n", "\t\"github.com/tidings-go/tidings/clientgo/cache\"\n",
	).Replace(text)
	got, err := Imports("p.go", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := Imports("broken.go", []byte("package")); err == nil ||
		!strings.Contains(err.Error(), "broken.go") {
		t.Errorf("a file without a package name: error %v, want one that names it", err)
	}
}

func TestNewCache(t *testing.T) {
	const text = `package p

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var make, other = cache.New, list.New

func f() (cache.Cache, error) { return cache.New(nil, cache.Options{}) }

var options = []manager.Options{manager.Options{}, ctrl.Options{Scheme: scheme}, {}}

var set = &manager.Options{NewCache: cache.New}
`
	want := strings.NewReplacer("package p\n", "package p\n\nimport \"github.com/tidings-go/tidings/ctrlruntime\"\n",
		"cache.New", "ctrlruntime.NewCache",
		"{manager.Options{", "{manager.Options{NewCache: ctrlruntime.NewCache, ",
		"ctrl.Options{", "ctrl.Options{NewCache: ctrlruntime.NewCache, ").Replace(text)
	for name, c := range map[string][2]string{
		"called": {text, want}, "not called": {"package p\n", "package p\n"},
		"another package": {"package p\n\nvar v = cache.New\n", "package p\n\nvar v = cache.New\n"},
	} {
		got, err := NewCache("p.go", []byte(c[0]))
		if err != nil || string(got) != c[1] {
			t.Errorf("%s: got\n%s\nwant\n%s\nerror %v", name, got, c[1], err)
		}
	}
}
