package controller

import (
	"fmt"
	"slices"
	"strings"
)

// Names are the controllers of a manager to run, as kube-controller-manager takes them: "*" is
// every controller that is on by default, "a" runs a, and "-a" does not. It is a value for package
// flag and for pflag:
//
//	names := controller.Names{"*"}
//	flag.Var(&names, "controllers", names.Usage())
type Names []string

// String returns the names with commas.
func (n *Names) String() string {
	if n == nil {
		return ""
	}
	return strings.Join(*n, ",")
}

// wasSet stands behind the last name, within the capacity, once Set has replaced the default.
const wasSet = "(set)"

// Set replaces the names by a list with commas. Later calls append their lists, so that a flag can
// be repeated, as kube-controller-manager's.
func (n *Names) Set(text string) error {
	var names Names
	if end := len(*n); cap(*n) > end && (*n)[:end+1][end] == wasSet {
		names = *n
	}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	*n = append(slices.Clip(names), wasSet)[:len(names)]
	return nil
}

// Type returns the name of the type in the help of pflag.
func (n *Names) Type() string { return "names" }

// Usage returns a text for the flag.
func (n *Names) Usage() string {
	return "controllers to run: * is all that are on by default, a runs a, -a does not run a"
}

// enabled returns the descriptors that the names select. A name that no descriptor has is an error.
func (n Names) enabled(all []Descriptor) ([]Descriptor, error) {
	known := func(name string) bool {
		return slices.ContainsFunc(all, func(d Descriptor) bool { return d.has(name) })
	}
	for _, name := range n {
		if plain := strings.TrimPrefix(name, "-"); name != "*" && !known(plain) {
			return nil, fmt.Errorf("there is no controller %q: the names are %s", plain, namesOf(all))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(d Descriptor) bool { return !n.runs(d) }), nil
}

// runs reports whether a controller is to run. Its own name counts more than "*".
func (n Names) runs(d Descriptor) bool {
	if len(n) == 0 {
		return !d.DefaultOff
	}
	star := false
	for _, name := range n {
		switch {
		case d.has(name):
			return true
		case strings.HasPrefix(name, "-") && d.has(name[1:]):
			return false
		}
		star = star || name == "*"
	}
	return star && !d.DefaultOff
}

// namesOf lists the names of descriptors.
func namesOf(all []Descriptor) string {
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.Name
		if d.DefaultOff {
			names[i] += " (off by default)"
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// has reports whether the controller has a name, or has it as an alias.
func (d Descriptor) has(name string) bool {
	return name == d.Name || slices.Contains(d.Aliases, name)
}
