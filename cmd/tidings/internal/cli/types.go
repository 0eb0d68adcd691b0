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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// query is an argument of watch and record: all objects of a type, or one object.
type query struct {
	kind string // any name of the type
	name string // of the object, "" for all
}

// parseQueries parses the arguments of a command in the forms of kubectl: TYPE[,TYPE…],
// TYPE[,TYPE…] NAME…, and TYPE/NAME….
func parseQueries(command string, args []string) (queries []query, err error) {
	if len(args) == 0 {
		return nil, problem.Usage("name a type to %[1]s, as in `tidings %[1]s pods`, "+
			"`tidings %[1]s pods,deployments` or `tidings %[1]s deployment/web`", command)
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
				return nil, problem.Usage("%q is not TYPE/NAME: write all arguments as one type and one "+
					"name, as in deployment/web", arg)
			}
			add(query{kind, name})
		}
		return queries, nil
	}
	names := args[1:]
	for _, name := range names {
		if name == "" || strings.Contains(name, ",") {
			return nil, problem.Usage("%q is no name of an object: separate types by commas, names by "+
				"spaces", name)
		}
	}
	if len(names) == 0 {
		names = []string{""}
	}
	for kind := range strings.SplitSeq(args[0], ",") {
		for _, name := range names {
			if kind != "" {
				add(query{kind, name})
			}
		}
	}
	if len(queries) == 0 {
		return nil, problem.Usage("%q names no type", args[0])
	}
	return queries, nil
}

func (c *cluster) discover(queries []query) ([]*meta.RESTMapping, error) {
	discovered, err := c.discovery()
	if err != nil {
		return nil, c.target.Explain(err)
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(discovered),
		discovered, func(string) {})
	var types []*meta.RESTMapping
	for _, q := range queries {
		mapping, err := mappingOf(mapper, q.kind)
		switch {
		case meta.IsNoMatchError(err):
			hint := "`kubectl api-resources` lists its types"
			if similar := suggest(strings.ToLower(q.kind), c.typeNames()); len(similar) > 0 {
				hint = "did you mean " + strings.Join(similar, " or ") + "?"
			}
			return nil, fmt.Errorf("the server has no type %q: %s", q.kind, hint)
		case apierrors.IsNotFound(err):
			err = problem.NotKubernetesError("404 (Not Found) to a request for /apis")
		case errors.As(err, new(*json.SyntaxError)):
			err = problem.NotKubernetesError("a text that is not JSON")
		case err == nil:
			err = c.checkVerbs(mapping.Resource)
		}
		if err != nil {
			return nil, c.target.Explain(err)
		}
		types = append(types, mapping)
	}
	return types, nil
}

// mappingOf returns the type with a name in kubectl's forms: plural, singular, short name or kind,
// with .group or .version.group.
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
			var names []string
			for _, r := range ambiguous.MatchingResources {
				names = append(names, r.GroupResource().String())
			}
			return nil, fmt.Errorf("%q means several types: add the group, as in %s", name,
				strings.Join(names, " or "))
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

// watchable matches the types that can be listed and watched.
var watchable = discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}

func (c *cluster) checkVerbs(resource schema.GroupVersionResource) error {
	discovered, err := c.discovery()
	if err != nil {
		return err
	}
	list, err := discovered.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("looking for the verbs of %s: %w", resource.Resource, err)
	}
	for _, served := range list.APIResources {
		if served.Name == resource.Resource && !watchable.Match(list.GroupVersion, &served) {
			return fmt.Errorf("the server cannot list and watch %s: `kubectl api-resources "+
				"--verbs=list,watch` lists the types that it can", resource.Resource)
		}
	}
	return nil
}

// typeNames returns the names of the types that can be watched: their plurals, with the group if
// another type has the same plural.
func (c *cluster) typeNames() (names []string) {
	discovered, err := c.discovery()
	if err != nil {
		return nil
	}
	lists, _ := discovered.ServerPreferredResources() // some groups may not answer
	resources, _ := discovery.GroupVersionResources(discovery.FilteredBy(watchable, lists))
	byGroup := func(a, b schema.GroupVersionResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	}
	for _, resource := range slices.SortedFunc(maps.Keys(resources), byGroup) {
		name := resource.Resource
		if slices.Contains(names, name) {
			name = resource.GroupResource().String()
		}
		if !slices.Contains(names, name) { // no other version has added it
			names = append(names, name)
		}
	}
	return names
}
