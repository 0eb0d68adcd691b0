package resolve

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxSuggestions is how many names an error offers.
const maxSuggestions = 3

// candidate is a resource with all its names.
type candidate struct {
	plural, group string
	names         []string // lower case, plural first
}

// shown is what to type for it: with the group where the plural alone means another.
func (c candidate) shown(plurals map[string]int) string {
	if plurals[c.plural] > 1 && c.group != "" {
		return c.plural + "." + c.group
	}
	return c.plural
}

// candidates collects the resources of discovery, each once, without subresources.
func candidates(lists []*metav1.APIResourceList) []candidate {
	var found []candidate
	seen := make(map[schema.GroupResource]bool)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			gr := schema.GroupResource{Group: gv.Group, Resource: r.Name}
			if strings.Contains(r.Name, "/") || seen[gr] || !watchable(r.Verbs) {
				continue
			}
			seen[gr] = true
			c := candidate{plural: r.Name, group: gv.Group, names: []string{r.Name}}
			for _, name := range append([]string{r.SingularName, r.Kind}, r.ShortNames...) {
				if name != "" {
					c.names = append(c.names, strings.ToLower(name))
				}
			}
			found = append(found, c)
		}
	}
	return found
}

// near returns the resources whose names are nearest to what was typed, nearest
// first.
func near(typed string, all []candidate) []string {
	resource, group, hasGroup := strings.Cut(strings.ToLower(typed), ".")
	type scored struct {
		candidate
		distance int
	}
	var matches []scored
	plurals := make(map[string]int)
	for _, c := range all {
		plurals[c.plural]++
		best := -1
		for _, name := range c.names {
			d := distance(resource, name)
			if strings.HasPrefix(name, resource) && len(resource) >= 3 {
				d = min(d, 1) // an unfinished word
			}
			if d <= tolerance(resource, name) && (best < 0 || d < best) {
				best = d
			}
		}
		if best < 0 {
			continue
		}
		if hasGroup && !strings.HasSuffix(group, c.group) {
			best++
		}
		matches = append(matches, scored{c, best})
	}
	slices.SortStableFunc(matches, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.plural, b.plural), cmp.Compare(a.group, b.group))
	})
	var names []string
	for _, m := range matches[:min(maxSuggestions, len(matches))] {
		names = append(names, m.shown(plurals))
	}
	return names
}

// tolerance is how many letters may differ: about a third of the shorter name.
func tolerance(a, b string) int {
	shorter := min(len(a), len(b))
	if shorter <= 2 {
		return 0
	}
	return max(1, shorter/3)
}

func watchable(verbs metav1.Verbs) bool {
	return slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}
