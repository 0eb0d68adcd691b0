package cli

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/internal/engine/builtin"
)

// verbs are the verbs of rules.
var verbs = append([]string{"*"}, apisim.Verbs()...)

// readUsers reads the values of --users: files, and users in the form
// NAME=VERBS:RESOURCES[:NAMESPACES]. Users without a token get a generated one. The rules of one
// name add up. Unless there are no users, the last one is the user of the server itself, which has
// all rights.
func readUsers(given []string) ([]apisim.User, error) {
	var users []apisim.User
	for _, text := range given {
		read, err := readUser(text)
		if err != nil {
			return nil, err
		}
		for _, user := range read {
			same := func(u apisim.User) bool { return u.Name == user.Name }
			if i := slices.IndexFunc(users, same); i >= 0 && user.Token == "" {
				users[i].Allow = append(users[i].Allow, user.Allow...)
				continue
			}
			if user.Name == kubeconfigName || slices.ContainsFunc(users, same) {
				return nil, problem.Usage("--users %s: the name %q is taken: choose another", text, user.Name)
			}
			users = append(users, user)
		}
	}
	if len(users) == 0 {
		return nil, nil
	}
	users = append(users, apisim.User{
		Name: kubeconfigName, Allow: []apisim.Rule{{Verbs: []string{"*"}, Resources: []string{"*"}}},
	})
	for i := range users {
		if users[i].Token == "" {
			users[i].Token = madeTokenPrefix + rand.Text()
		}
	}
	return users, nil
}

func readUser(text string) ([]apisim.User, error) {
	if !strings.Contains(text, "=") {
		return readUsersFile(text)
	}
	// Names of service accounts have colons.
	name, rights, _ := strings.Cut(text, "=")
	parts := strings.Split(rights, ":")
	if name == "" || len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return nil, problem.Usage("--users %q: name a file of users, or write "+
			"NAME=VERBS:RESOURCES[:NAMESPACES], as in reader=get,list,watch:pods:shop", text)
	}
	rule := apisim.Rule{Verbs: strings.Split(parts[0], ","), Resources: strings.Split(parts[1], ",")}
	if len(parts) == 3 {
		rule.Namespaces = strings.Split(parts[2], ",")
	}
	if err := checkRule(rule); err != nil {
		return nil, problem.Usage("--users %q: %w", text, err)
	}
	return []apisim.User{{Name: name, Allow: []apisim.Rule{rule}}}, nil
}

func readUsersFile(file string) ([]apisim.User, error) {
	const form = "write a list of users, as in `- {name: reader, allow: " +
		"[{verbs: [get, list, watch], resources: [pods]}]}`"
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--users: %w: name a file of users, or write "+
			"NAME=VERBS:RESOURCES[:NAMESPACES]", err)
	}
	var users []apisim.User
	if err := yaml.UnmarshalStrict(text, &users); err != nil {
		return nil, fmt.Errorf("--users: %s: %w: %s", file, err, form)
	}
	if len(users) == 0 {
		return nil, fmt.Errorf("--users: %s has no users: %s", file, form)
	}
	for i, user := range users {
		if user.Name == "" {
			return nil, fmt.Errorf("--users: %s: user %d has no name: %s", file, i+1, form)
		}
		for _, rule := range user.Allow {
			if err := checkRule(rule); err != nil {
				return nil, fmt.Errorf("--users: %s: user %q: %w", file, user.Name, err)
			}
		}
	}
	return users, nil
}

// checkRule returns an error for a rule that allows nothing because of a wrong name.
func checkRule(rule apisim.Rule) error {
	if len(rule.Verbs) == 0 || len(rule.Resources) == 0 {
		return fmt.Errorf("a rule needs verbs and resources, as in "+
			"{verbs: [get, list, watch], resources: [pods]}, or %q for any", "*")
	}
	for _, verb := range rule.Verbs {
		if !slices.Contains(verbs, verb) {
			return fmt.Errorf("there is no verb %q: the verbs are %s", verb,
				strings.Join(verbs, ", "))
		}
	}
	for _, resource := range rule.Resources {
		if grouped := withGroup(resource); grouped != resource {
			return fmt.Errorf("%q needs its group: write %q", resource, grouped)
		}
	}
	return nil
}

// withGroup adds the group to the name of a built-in resource that has one.
func withGroup(resource string) string {
	name, subresource, nested := strings.Cut(resource, "/")
	group := ""
	for _, r := range builtin.All() {
		if r.Resource == name && r.Group == "" {
			return resource
		}
		if r.Resource == name {
			group = cmp.Or(group, r.Group)
		}
	}
	if group == "" {
		return resource
	}
	if nested {
		subresource = "/" + subresource
	}
	return name + "." + group + subresource
}
