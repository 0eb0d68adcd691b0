package cli

import (
	"slices"
	"strings"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// query is what a user asks to follow: the objects of a type, or one of them.
type query struct {
	kind string // any name of the type
	name string // of the object, "" for all
}

// parseQueries reads the arguments in the forms of kubectl: TYPE[,TYPE…],
// TYPE[,TYPE…] NAME…, and TYPE/NAME….
func parseQueries(command string, args []string) ([]query, error) {
	if len(args) == 0 {
		return nil, problem.Usage(command, "name a type to watch, as in `tidings watch pods`, `tidings watch pods,deployments` or `tidings watch deployment/web`")
	}
	var queries []query
	if strings.Contains(strings.Join(args, ""), "/") {
		for _, arg := range args {
			for part := range strings.SplitSeq(arg, ",") {
				kind, name, both := strings.Cut(part, "/")
				switch {
				case !both:
					return nil, problem.Usage(command, "%q is not TYPE/NAME, as in deployment/web, while another argument is: write all of them so", part)
				case kind == "" || name == "" || strings.Contains(name, "/"):
					return nil, problem.Usage(command, "%q is not TYPE/NAME, as in deployment/web: it has to be one type and one name", part)
				}
				queries = append(queries, query{kind, name})
			}
		}
		return unique(queries), nil
	}
	names := args[1:]
	for kind := range strings.SplitSeq(args[0], ",") {
		if kind == "" {
			continue
		}
		if len(names) == 0 {
			queries = append(queries, query{kind: kind})
		}
		for _, name := range names {
			queries = append(queries, query{kind, name})
		}
	}
	if len(queries) == 0 {
		return nil, problem.Usage(command, "%q names no type", args[0])
	}
	if i := slices.IndexFunc(names, func(name string) bool { return name == "" || strings.Contains(name, ",") }); i >= 0 {
		return nil, problem.Usage(command, "%q is no name of an object: types are separated by commas, names by spaces", names[i])
	}
	return unique(queries), nil
}

// unique leaves out what was said before.
func unique(queries []query) []query {
	var once []query
	for _, q := range queries {
		if !slices.Contains(once, q) {
			once = append(once, q)
		}
	}
	return once
}
