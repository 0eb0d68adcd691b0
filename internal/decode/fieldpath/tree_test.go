package fieldpath

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := map[string]struct{ paths, want []string }{
		"none":                  {},
		"one":                   {[]string{"status"}, []string{"status"}},
		"deep":                  {[]string{"spec.containers.env", "metadata.managedFields"}, []string{"metadata.managedFields", "spec.containers.env"}},
		"twice":                 {[]string{"status", "status"}, []string{"status"}},
		"within a later one":    {[]string{"spec.containers.env", "spec.containers"}, []string{"spec.containers"}},
		"within an earlier one": {[]string{"spec", "spec.containers.env"}, []string{"spec"}},
		"beside another":        {[]string{"spec.b.c", "spec.b.a"}, []string{"spec.b.a", "spec.b.c"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tree, err := Parse(test.paths)
			if err != nil || !slices.Equal(tree.Paths(), test.want) {
				t.Errorf("%q, %v; want %q", tree.Paths(), err, test.want)
			}
			if (tree == nil) != (len(test.want) == 0) {
				t.Errorf("the tree of %q is %v", test.paths, tree)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, path := range []string{
		"", ".", "spec.", ".spec", "a..b", "apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace",
		"metadata.uid", "metadata.resourceVersion",
	} {
		if tree, err := Parse([]string{"status", path}); err == nil || !strings.Contains(err.Error(), `"`+path+`"`) {
			t.Errorf("%q: %v, %v", path, tree, err)
		}
	}
}
