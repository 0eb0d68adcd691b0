package apisim

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// User is a sender of requests with a bearer token. Its JSON form is that of the fields
// in lower case.
type User struct {
	// Name is the name in messages, such as "system:serviceaccount:default:web".
	Name string `json:"name"`
	// Token is the bearer token. It must not be empty, and no other user's.
	Token string `json:"token"`
	// Allow lists the rights of the user; without rules a user has discovery only.
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
	// Names are those of the objects; nil is any. A list or a watch is of one object if it
	// has the field selector metadata.name.
	Names []string `json:"names,omitempty"`
}

// SetUsers makes the server answer 401 to requests without the token of a user, and 403
// to requests that no rule of the user allows. It replaces the users before. A server
// without users, as it is at first, allows everything. Running watches go on.
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

// authorize refuses a request that no rule of its sender allows. Every user may send
// requests that name no resource.
func (s *Server) authorize(r *http.Request) error {
	s.mu.Lock()
	users := s.users
	s.mu.Unlock()
	if len(users) == 0 {
		return nil
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	user, known := users[token]
	if !ok || !known {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	asked := requestOf(r)
	allows := func(rule Rule) bool { return rule.allows(asked) }
	if asked.Resource.Resource == "" || slices.ContainsFunc(user.Allow, allows) {
		return nil
	}
	return errForbidden(user, asked)
}

func (rule Rule) allows(r Request) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
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
