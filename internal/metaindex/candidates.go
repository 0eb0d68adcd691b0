package metaindex

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tidings-go/tidings/store"
)

// Candidates yields, with their keys and ascending by key, objects whose keys begin with the
// prefix. Among them are all that the selector matches. exact says that all of them match:
// the selector has no requirement, or matches nothing.
func Candidates[T any](s store.Snapshot[T], prefix string, selector labels.Selector) (
	found iter.Seq2[string, T], exact bool) {
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
		x, ok := s.Index(Label(requirements[i].Key()))
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
