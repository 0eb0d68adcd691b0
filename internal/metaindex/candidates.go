package metaindex

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/store"
)

// Label identifies the index of the label of a key.
type Label string

// String returns a text for errors.
func (l Label) String() string { return "label " + string(l) }

type owners struct{}

func (owners) String() string { return "owners" }

// Owners identifies the index of the UIDs of owners.
var Owners = owners{}

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

// OwnerCandidates yields objects whose keys begin with the prefix. Among them are all that
// have an owner of that UID.
func OwnerCandidates[T any](s store.Snapshot[T], prefix string,
	uid types.UID) iter.Seq2[string, T] {
	if x, ok := s.Index(Owners); ok {
		return x.Within(prefix).Lookup(string(uid))
	}
	return s.Prefix(prefix)
}
