package fieldpath

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Tree is a set of paths, by the name of their first field: the rest of the paths, or nil if
// the field itself is left out. A nil Tree that is not the value of a field leaves out
// nothing. Trees do not change after [Parse].
type Tree map[string]Tree

// identity are the fields without which an object cannot be cached.
var identity = []string{
	"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace",
	"metadata.resourceVersion", "metadata.uid",
}

// Parse makes a tree of paths; none make nil. A path within another one adds nothing to
// it. It returns an error that names the path if a path is empty, has an empty step, or
// leaves out a field that tells objects apart: apiVersion, kind, and the name, namespace, uid and
// resourceVersion of the metadata.
func Parse(paths []string) (Tree, error) {
	var tree Tree
	for _, path := range paths {
		steps := strings.Split(path, ".")
		if slices.Contains(steps, "") {
			return nil, fmt.Errorf("%q is not a path of fields: name them as JSON does, "+
				"joined by dots, as in \"metadata.managedFields\"", path)
		}
		if slices.Contains(identity, path) {
			return nil, fmt.Errorf("%q cannot be left out: objects are told apart by it", path)
		}
		if tree == nil {
			tree = Tree{}
		}
		tree.add(steps)
	}
	return tree, nil
}

func (t Tree) add(steps []string) {
	for _, step := range steps[:len(steps)-1] {
		next, known := t[step]
		if known && next == nil {
			return
		}
		if !known {
			next = Tree{}
			t[step] = next
		}
		t = next
	}
	t[steps[len(steps)-1]] = nil
}

// Drops reports whether a field of this level is left out whole.
func (t Tree) Drops(field string) bool {
	rest, known := t[field]
	return known && rest == nil
}

// Paths returns the paths in order, without those within others, so that two trees are of
// the same fields if their paths are equal.
func (t Tree) Paths() []string {
	var paths []string
	for _, field := range slices.Sorted(maps.Keys(t)) {
		if t[field] == nil {
			paths = append(paths, field)
			continue
		}
		for _, rest := range t[field].Paths() {
			paths = append(paths, field+"."+rest)
		}
	}
	return paths
}

// String returns the paths in one form: it is equal for trees of the same fields. That of an
// empty tree allocates nothing: it is asked for with each shared object.
func (t Tree) String() string {
	if len(t) == 0 {
		return ""
	}
	return strings.Join(t.Paths(), ",")
}
