package apisim

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// User is a sender of requests with a bearer token. Its JSON form has the names of the fields in
// lower case.
type User struct {
	// Name is the name in messages, such as "system:serviceaccount:default:web".
	Name string `json:"name"`
	// Token is the bearer token. It must not be empty, and must differ from those of other users.
	Token string `json:"token"`
	// Allow lists the rights of the user. Without rules a user has discovery, and reviews of its
	// own rights.
	Allow []Rule `json:"allow,omitempty"`
}

// Rule allows verbs on resources.
type Rule struct {
	// Verbs are get, list, watch, create, update, patch, delete and deletecollection;
	// "*" is any.
	Verbs []string `json:"verbs,omitempty"`
	// Resources are plurals with their group, and with their subresource, such as "pods",
	// "pods/status", "deployments.apps" and "widgets.example.com/scale"; "*" is any, with
	// its subresources.
	Resources []string `json:"resources,omitempty"`
	// Namespaces are the allowed namespaces; nil is all of them, and resources without
	// namespaces too.
	Namespaces []string `json:"namespaces,omitempty"`
	// Names are the names of objects; nil is any. A list or a watch has the name of one object if
	// it has the field selector metadata.name.
	Names []string `json:"names,omitempty"`
}

// SetUsers makes the server answer 401 to requests without the token of a user, and 403 to requests
// that no rule of the user allows. It replaces the previous users. A server without users, such as
// a new one, allows everything. Running watches go on.
func (s *Server) SetUsers(users ...User) error {
	known := make(map[string]User, len(users))
	for _, u := range users {
		if _, exists := known[u.Token]; u.Token == "" || exists {
			return fmt.Errorf("apisim: the user %q needs a token of its own", u.Name)
		}
		known[u.Token] = u
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = known
	return nil
}

// sender returns the user whose token a request has.
func (s *Server) sender(r *http.Request) (User, error) {
	s.mu.Lock()
	users := s.users
	s.mu.Unlock()
	if len(users) == 0 {
		return anybody("system:anonymous"), nil
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	user, known := users[token]
	if !ok || !known {
		return User{}, apierrors.NewUnauthorized("Unauthorized")
	}
	return user, nil
}

// userNamed returns a user by name. A user that the server does not know has no rights.
func (s *Server) userNamed(name string) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.users) == 0 {
		return anybody(name)
	}
	for _, u := range s.users {
		if u.Name == name {
			return u
		}
	}
	return User{Name: name}
}

// anybody returns a user of a server without users, which has all rights.
func anybody(name string) User {
	everything := Rule{Verbs: []string{"*"}, Resources: []string{"*"}}
	return User{Name: name, Allow: []Rule{everything}}
}

// authorize refuses a request that its sender may not send.
func (s *Server) authorize(r *http.Request, asked Request) error {
	user, err := s.sender(r)
	if err != nil {
		return err
	}
	if !user.allows(asked) {
		return errForbidden(user, asked)
	}
	return nil
}

// allows reports whether a user may send a request. Every user may send requests that name
// no resource, and reviews of its own rights.
func (u User) allows(asked Request) bool {
	return asked.Resource.Resource == "" || isSelfReview(asked) ||
		slices.ContainsFunc(u.Allow, func(rule Rule) bool { return rule.allows(asked) })
}

func has(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

func (rule Rule) allows(r Request) bool {
	return has(rule.Verbs, r.Verb) && has(rule.Resources, r.resourceText()) &&
		(rule.Namespaces == nil || has(rule.Namespaces, r.Namespace)) &&
		(rule.Names == nil || slices.Contains(rule.Names, r.Name))
}

func errForbidden(u User, r Request) error {
	resource := r.Resource.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	where := "at the cluster scope"
	if r.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", r.Namespace)
	}
	message := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s",
		u.Name, r.Verb, resource, r.Resource.Group, where)
	return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, errors.New(message))
}

// RulesOf returns the rules of a Role in a namespace, or of a ClusterRole, if namespace is "". With
// them a test runs a program with the rights of its manifests. A rule of all resources of one group,
// or of one resource of all groups, is an error: a [Rule] has no such rights.
func RulesOf(namespace string, rules []rbacv1.PolicyRule) (all []Rule, err error) {
	for _, r := range rules {
		rule := Rule{Verbs: r.Verbs, Names: r.ResourceNames}
		if namespace != "" {
			rule.Namespaces = []string{namespace}
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				name, subresource, isSub := strings.Cut(resource, "/")
				switch {
				case (group == "*") != (name == "*"):
					return nil, fmt.Errorf("apisim: the rule of %q in the group %q: name both, or "+
						`give both as "*"`, resource, group)
				case group != "" && group != "*":
					name += "." + group
				}
				if isSub {
					name += "/" + subresource
				}
				rule.Resources = append(rule.Resources, name)
			}
		}
		if rule.Resources != nil { // else it is about paths, which every user may ask for
			all = append(all, rule)
		}
	}
	return all, nil
}

// CheckRights compares the rights of rules with the requests. Its error names each request that was
// refused, and each verb of a resource that no request had: a program needs its rules, and no more.
// spare has rights that the test leads to no request of, as in "patch events.events.k8s.io".
func (list Requests) CheckRights(rules []Rule, spare ...string) error {
	var all []error
	for _, r := range list {
		if r.Status == http.StatusForbidden || r.Status == http.StatusUnauthorized {
			all = append(all, fmt.Errorf("apisim: the rules do not allow %v", r))
		}
	}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				right := verb + " " + resource
				used := list.Of(Match{Verb: strings.Trim(verb, "*"), Resource: strings.Trim(resource, "*")})
				if len(used) == 0 && !slices.Contains(spare, right) {
					all = append(all, fmt.Errorf("apisim: no request needs the right %q", right))
				}
			}
		}
	}
	return errors.Join(all...)
}
