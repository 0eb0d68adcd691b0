package metaindex

import "k8s.io/apimachinery/pkg/labels"

// Requirements returns the requirements of a selector of apimachinery. ok is false for a selector of
// another package: it may select other objects than the requirements that it returns, as one that
// embeds a selector does. Then only Matches tells.
func Requirements(selector labels.Selector) (all labels.Requirements, ok bool) {
	if selector == nil || !isKnown(selector) {
		return nil, false
	}
	return selector.Requirements()
}
