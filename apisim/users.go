package apisim

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
)

// User is who sends requests with a bearer token.
type User struct {
	// Name is how messages call the user, such as
	// "system:serviceaccount:default:web".
	Name string
	// Token is the bearer token. It must not be empty, and no other user's.
	Token string
	// Allow is what the user may do, beside asking which resources there are; nil is
	// nothing.
	Allow []Rule
}

// Rule allows verbs on resources.
type Rule struct {
	// Verbs are get, list, watch, create, update, patch, delete and
	// deletecollection; "*" is any.
	Verbs []string
	// Resources are plurals with their group, and with their subresource, such as
	// "pods", "pods/status", "deployments.apps" and "widgets.example.com/scale"; "*"
	// is any, with its subresources.
	Resources []string
	// Namespaces are where it is allowed; nil is everywhere, and for resources
	// without namespaces too.
	Namespaces []string
	// Names are those of the objects; nil is any. A list or a watch is of one object
	// if it has the field selector metadata.name.
	Names []string
}

// SetUsers makes the server answer 401 to requests without the token of one of the
// users, and 403 to what its user is not allowed. It takes the place of the users
// before; without any, everyone may do everything, which is how a server begins.
// Watches that are running go on.
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

// authorize refuses a request that its sender is not allowed. Paths that name no
// resource are allowed to every user.
func (s *Server) authorize(r *http.Request, p requestPath) error {
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
	if p.gvr.Resource == "" {
		return nil
	}
	asked := p
	asked.name = p.nameOf(r)
	verb := p.verb(r)
	if slices.ContainsFunc(user.Allow, func(rule Rule) bool { return rule.allows(asked, verb) }) {
		return nil
	}
	return errForbidden(user, asked, verb)
}

// nameOf returns the name of the one object that a request is about, "" if it is
// about several or a new one.
func (p requestPath) nameOf(r *http.Request) string {
	if p.name != "" {
		return p.name
	}
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

func (rule Rule) allows(p requestPath, verb string) bool {
	resource := p.gvr.GroupResource().String()
	if p.subresource != "" {
		resource += "/" + p.subresource
	}
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return has(rule.Verbs, verb) && has(rule.Resources, resource) &&
		(rule.Namespaces == nil || has(rule.Namespaces, p.namespace)) &&
		(rule.Names == nil || slices.Contains(rule.Names, p.name))
}

func errForbidden(u User, p requestPath, verb string) error {
	resource := p.gvr.Resource
	if p.subresource != "" {
		resource += "/" + p.subresource
	}
	where := "at the cluster scope"
	if p.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", p.namespace)
	}
	message := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", u.Name, verb, resource, p.gvr.Group, where)
	return apierrors.NewForbidden(p.gvr.GroupResource(), p.name, errors.New(message))
}
