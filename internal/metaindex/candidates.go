package metaindex

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tidings-go/tidings/store"
)

// Candidates yields objects whose keys begin with the prefix, ascending by key. All objects
// that the selector matches are among them. index returns the index of a label, of the same
// snapshot, if there is one. exact reports whether all candidates match, which is so for a
// selector without requirements and for one that matches nothing.
func Candidates[T any](s store.Snapshot[T], prefix string, selector labels.Selector, index func(label string) (store.Index[T], bool)) (found iter.Seq2[string, T], exact bool) {
	if selector == nil || selector.Empty() {
		return s.Prefix(prefix), true
	}
	requirements, selectable := selector.Requirements()
	if !selectable {
		return func(func(string, T) bool) {}, true
	}
	least := -1
	for i := range requirements {
		switch requirements[i].Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			continue
		}
		x, ok := index(requirements[i].Key())
		if !ok {
			continue
		}
		x = x.Within(prefix)
		values := requirements[i].ValuesUnsorted()
		count := 0
		for _, value := range values {
			count += x.Len(value)
		}
		if least < 0 || count < least {
			least, found = count, x.LookupAny(values)
		}
	}
	if least < 0 {
		return s.Prefix(prefix), false
	}
	return found, false
}
