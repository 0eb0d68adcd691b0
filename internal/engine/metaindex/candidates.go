package metaindex

import (
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tidings-go/tidings/store"
)

// The types of apimachinery's selectors, besides labels.ValidatedSetSelector.
var (
	selectorType = reflect.TypeOf(labels.NewSelector())
	nothingType  = reflect.TypeOf(labels.Nothing())
)

// isKnown reports whether a selector is apimachinery's: it matches if all its requirements do. A
// selector of the program's own, such as one that embeds another, promises Empty and Matches alone.
func isKnown(selector labels.Selector) bool {
	if _, ok := selector.(labels.ValidatedSetSelector); ok {
		return true
	}
	t := reflect.TypeOf(selector)
	return t == selectorType || t == nothingType
}

// Matches reports whether a selector matches the labels of an object. A selector of the program's
// own receives a labels.Set, as from client-go's listers.
func Matches(selector labels.Selector, obj Object) bool {
	if isKnown(selector) {
		return selector.Matches(Labels(obj))
	}
	return selector.Matches(labels.Set(obj.GetLabels()))
}

// Candidates yields, with their keys and ascending by key, objects whose keys begin with the
// prefix. Among them are all that the selector matches. exact says that all of them match:
// the selector has no requirement, or matches nothing.
func Candidates[T any](s store.Snapshot[T], prefix string, selector labels.Selector) (
	found iter.Seq2[string, T], exact bool) {
	if selector == nil || selector.Empty() {
		return s.Prefix(prefix), true
	}
	if !isKnown(selector) {
		return s.Prefix(prefix), false
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
