package resolve

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names returns the plurals of what can be listed and watched that begin with what was
// typed: with the group where the plural alone means another, or where a dot was typed.
func Names(lists []*metav1.APIResourceList, typed string) []string {
	all := candidates(lists)
	plurals := make(map[string]int)
	for _, c := range all {
		plurals[c.plural]++
	}
	var names []string
	for _, c := range all {
		name := c.shown(plurals)
		if strings.Contains(typed, ".") && c.group != "" {
			name = c.plural + "." + c.group
		}
		if strings.HasPrefix(name, strings.ToLower(typed)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
