package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// query is an argument of watch and record: the objects of a type, or one of them.
type query struct {
	kind string // any name of the type
	name string // of the object, "" for all
}

// parseQueries parses the arguments in the forms of kubectl: TYPE[,TYPE…], TYPE[,TYPE…] NAME…,
// and TYPE/NAME….
func parseQueries(command string, args []string) (queries []query, err error) {
	if len(args) == 0 {
		verb := command[strings.LastIndexByte(command, ' ')+1:]
		return nil, problem.Usage(command, "name a type to %[1]s, as in `tidings %[1]s pods`, "+
			"`tidings %[1]s pods,deployments` or `tidings %[1]s deployment/web`", verb)
	}
	add := func(q query) {
		if !slices.Contains(queries, q) {
			queries = append(queries, q)
		}
	}
	if strings.Contains(strings.Join(args, ""), "/") {
		for arg := range strings.SplitSeq(strings.Join(args, ","), ",") {
			kind, name, both := strings.Cut(arg, "/")
			if !both || kind == "" || name == "" || strings.Contains(name, "/") {
				return nil, problem.Usage(command, "%q is not TYPE/NAME: "+
					"write all arguments as one type and one name, as in deployment/web", arg)
			}
			add(query{kind, name})
		}
		return queries, nil
	}
	names := args[1:]
	isNoName := func(name string) bool { return name == "" || strings.Contains(name, ",") }
	if i := slices.IndexFunc(names, isNoName); i >= 0 {
		return nil, problem.Usage(command,
			"%q is no name of an object: separate types by commas, names by spaces", names[i])
	}
	for kind := range strings.SplitSeq(args[0], ",") {
		switch {
		case kind == "":
		case len(names) == 0:
			add(query{kind: kind})
		default:
			for _, name := range names {
				add(query{kind, name})
			}
		}
	}
	if len(queries) == 0 {
		return nil, problem.Usage(command, "%q names no type", args[0])
	}
	return queries, nil
}

// discover returns the types of queries. Its errors say what to do.
func (c *cluster) discover(queries []query) ([]*meta.RESTMapping, error) {
	mapper, err := c.flags.ToRESTMapper()
	if err != nil {
		return nil, c.target.Explain(err)
	}
	discovered, err := c.flags.ToDiscoveryClient()
	if err != nil {
		return nil, c.target.Explain(err)
	}
	var types []*meta.RESTMapping
	for _, q := range queries {
		mapping, err := mappingOf(mapper, q.kind)
		switch {
		case meta.IsNoMatchError(err):
			lists, _ := discovered.ServerPreferredResources() // a part of the groups may not answer
			return nil, unknownType(q.kind, suggest(strings.ToLower(q.kind), typeNames(lists)))
		case apierrors.IsNotFound(err):
			err = &problem.NotKubernetesError{Answer: "404 (Not Found) to a request for /apis"}
		case isSyntax(err):
			err = &problem.NotKubernetesError{Answer: "a text that is not JSON"}
		case err == nil:
			err = checkVerbs(discovered, mapping.Resource)
		}
		if err != nil {
			return nil, c.target.Explain(err)
		}
		types = append(types, mapping)
	}
	return types, nil
}

// isSyntax reports whether err is about a text that is not JSON.
func isSyntax(err error) bool {
	_, ok := errors.AsType[*json.SyntaxError](err)
	return ok
}

// mappingOf returns the type with a name, as kubectl reads it: plural, singular, short name or
// kind, with .group or .version.group.
func mappingOf(mapper meta.RESTMapper, name string) (*meta.RESTMapping, error) {
	versioned, grouped := schema.ParseResourceArg(strings.ToLower(name))
	partials := []schema.GroupVersionResource{grouped.WithVersion("")}
	if versioned != nil {
		partials = append([]schema.GroupVersionResource{*versioned}, partials...)
	}
	for _, partial := range partials {
		kind, err := mapper.KindFor(partial)
		switch ambiguous, ok := errors.AsType[*meta.AmbiguousResourceError](err); {
		case ok:
			return nil, fmt.Errorf("%q means several types: add the group, as in %s", name,
				groupNames(ambiguous.MatchingResources))
		case err == nil:
			return mapper.RESTMapping(kind.GroupKind(), kind.Version)
		case !meta.IsNoMatchError(err):
			return nil, fmt.Errorf("looking for the type %q: %w", name, err)
		}
	}
	versionedKind, kind := schema.ParseKindArg(name)
	if versionedKind != nil {
		mapping, err := mapper.RESTMapping(versionedKind.GroupKind(), versionedKind.Version)
		if err == nil {
			return mapping, nil
		}
	}
	return mapper.RESTMapping(kind)
}

func groupNames(resources []schema.GroupVersionResource) string {
	var names []string
	for _, r := range resources {
		names = append(names, strings.TrimSuffix(r.Resource+"."+r.Group, "."))
	}
	return strings.Join(names, " or ")
}

// unknownType returns the error for a name that the server does not have.
func unknownType(name string, similar []string) error {
	hint := ": `kubectl api-resources` lists its types"
	if len(similar) > 0 {
		hint = ": did you mean " + strings.Join(similar, " or ") + "?"
	}
	return fmt.Errorf("the server has no type %q%s", name, hint)
}

// checkVerbs returns an error if a type cannot be listed and watched.
func checkVerbs(d discovery.DiscoveryInterface, resource schema.GroupVersionResource) error {
	list, err := d.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("looking for the verbs of %s: %w", resource.Resource, err)
	}
	for _, served := range list.APIResources {
		if served.Name == resource.Resource && !watchable.Match(list.GroupVersion, &served) {
			return fmt.Errorf("the server cannot list and watch %s: "+
				"`kubectl api-resources --verbs=list,watch` "+
				"lists the types that it can", resource.Resource)
		}
	}
	return nil
}

// watchable matches the types that can be listed and watched.
var watchable = discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}

// typeNames returns the names of the types that can be watched: their plurals, with the group if
// another type has the same plural.
func typeNames(lists []*metav1.APIResourceList) []string {
	lists = discovery.FilteredBy(watchable, lists)
	resources, _ := discovery.GroupVersionResources(lists) // those that can be parsed
	byGroup := func(a, b schema.GroupVersionResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	}
	var names []string
	for _, resource := range slices.SortedFunc(maps.Keys(resources), byGroup) {
		name := resource.Resource
		if slices.Contains(names, name) {
			name += "." + resource.Group
		}
		if !slices.Contains(names, name) { // in another version
			names = append(names, name)
		}
	}
	return names
}
