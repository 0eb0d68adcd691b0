package apisim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A review is a question in the form of an object: it is created, answered in its status,
// and not stored.

// review answers a review for the user who sends it.
type review func(s *Server, sender User, obj object)

// reviewResources returns the resources of the reviews that the server answers.
func reviewResources() []*resource {
	of := func(gv schema.GroupVersion, kind string, answer review) *resource {
		r := &resource{typed: true, collection: newCollection(), review: answer}
		r.Resource = Resource{
			Group: gv.Group, Version: gv.Version, Kind: kind,
			Name: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind),
		}
		return r
	}
	authorization := authorizationv1.SchemeGroupVersion
	local := of(authorization, "LocalSubjectAccessReview", func(s *Server, _ User, obj object) {
		r := obj.(*authorizationv1.LocalSubjectAccessReview)
		r.Status = s.access(s.userNamed(r.Spec.User), r.Spec.ResourceAttributes)
	})
	local.Namespaced = true
	return []*resource{
		local,
		of(authorization, "SubjectAccessReview", func(s *Server, _ User, obj object) {
			r := obj.(*authorizationv1.SubjectAccessReview)
			r.Status = s.access(s.userNamed(r.Spec.User), r.Spec.ResourceAttributes)
		}),
		of(authorization, "SelfSubjectAccessReview", func(s *Server, sender User, obj object) {
			r := obj.(*authorizationv1.SelfSubjectAccessReview)
			r.Status = s.access(sender, r.Spec.ResourceAttributes)
		}),
		of(authorization, "SelfSubjectRulesReview", func(_ *Server, sender User, obj object) {
			r := obj.(*authorizationv1.SelfSubjectRulesReview)
			r.Status = sender.rules(r.Spec.Namespace)
		}),
		of(authenticationv1.SchemeGroupVersion, "SelfSubjectReview",
			func(_ *Server, sender User, obj object) {
				r := obj.(*authenticationv1.SelfSubjectReview)
				r.Status.UserInfo.Username = sender.Name
			}),
	}
}

// isSelfReview reports whether a request asks about its own sender, as every user may.
func isSelfReview(r Request) bool {
	return r.Verb == "create" && slices.Contains([]string{
		"selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io",
		"selfsubjectrulesreviews.authorization.k8s.io",
	}, r.resourceText())
}

// review answers the review in the body.
func (x *exchange) review() (object, error) {
	sender, err := x.server.sender(x.r)
	if err != nil {
		return nil, err
	}
	obj, _, err := x.given()
	if err != nil {
		return nil, err
	}
	x.status = http.StatusCreated
	x.res.review(x.server, sender, obj)
	return obj, nil
}

// access reports whether a user may send a request. Every user may send requests that name
// no resource, which have no attributes.
func (s *Server) access(u User, of *authorizationv1.ResourceAttributes) (
	status authorizationv1.SubjectAccessReviewStatus) {
	asked := Request{}
	if of != nil {
		asked = Request{
			Verb: of.Verb, Subresource: of.Subresource, Namespace: of.Namespace, Name: of.Name,
			Resource: schema.GroupVersionResource{Group: of.Group, Resource: of.Resource},
		}
	}
	if status.Allowed = u.allows(asked); !status.Allowed {
		status.Reason = fmt.Sprintf("no rule of the user %q allows it", u.Name)
	}
	return status
}

// rules returns the rights of a user in a namespace.
func (u User) rules(namespace string) authorizationv1.SubjectRulesReviewStatus {
	status := authorizationv1.SubjectRulesReviewStatus{
		NonResourceRules: []authorizationv1.NonResourceRule{
			{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
		},
	}
	for _, rule := range u.Allow {
		if rule.Namespaces != nil && !has(rule.Namespaces, namespace) {
			continue
		}
		for _, text := range rule.Resources {
			whole, subresource, below := strings.Cut(text, "/")
			name, group, _ := strings.Cut(whole, ".")
			if text == "*" {
				group = "*"
			}
			if below {
				name += "/" + subresource
			}
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: []string{group}, Resources: []string{name},
				ResourceNames: rule.Names,
			})
		}
	}
	return status
}

// errNoKubelet refuses requests that a real server hands on to a kubelet.
func errNoKubelet(r *resource, subresource string) error {
	return newStatusError(http.StatusNotImplemented, "", fmt.Sprintf(
		"%s/%s needs a kubelet, and this server has none: it keeps objects and runs no containers",
		r.Name, subresource))
}

// checkKubelet returns an error for a request that only a kubelet can answer.
func (x *exchange) checkKubelet() error {
	of := map[string][]string{
		"pods":  {"log", "exec", "attach", "portforward", "proxy"},
		"nodes": {"proxy"},
	}
	if !x.res.isBuiltin("pods", "nodes") ||
		!slices.Contains(of[x.res.Name], x.path.subresource) {
		return nil
	}
	if _, err := x.server.get(x.res, x.path.namespace, x.path.name); err != nil {
		return err
	}
	return errNoKubelet(x.res, x.path.subresource)
}
