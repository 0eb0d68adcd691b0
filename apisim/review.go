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

// A review is an object that asks a question. The server answers it in its status at the create,
// and does not store it.

// reviewResources returns the resources of the reviews that the server answers.
func reviewResources() []*resource {
	authorization, authentication := authorizationv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion
	var all []*resource
	for _, kind := range []schema.GroupVersionKind{
		authorization.WithKind("SubjectAccessReview"), authorization.WithKind("LocalSubjectAccessReview"),
		authorization.WithKind("SelfSubjectAccessReview"), authorization.WithKind("SelfSubjectRulesReview"),
		authentication.WithKind("SelfSubjectReview"),
	} {
		r := &resource{typed: true, collection: newCollection(), isReview: true}
		r.Resource = Resource{
			Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Singular: strings.ToLower(kind.Kind),
			Name: strings.ToLower(kind.Kind) + "s", Namespaced: strings.HasPrefix(kind.Kind, "Local"),
		}
		all = append(all, r)
	}
	return all
}

// isSelfReview reports whether a request is a review of its own sender, which every user may send.
func isSelfReview(r Request) bool {
	return r.Verb == "create" && slices.Contains([]string{
		"selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io",
		"selfsubjectrulesreviews.authorization.k8s.io",
	}, r.resourceText())
}

// review answers the review in the body.
func (x *exchange) review() (object, error) {
	s := x.server
	sender, err := s.sender(x.r)
	if err != nil {
		return nil, err
	}
	obj, _, err := x.given()
	if err != nil {
		return nil, err
	}
	x.status = http.StatusCreated
	switch r := obj.(type) {
	case *authorizationv1.SubjectAccessReview:
		r.Status = s.userNamed(r.Spec.User).access(r.Spec.ResourceAttributes)
	case *authorizationv1.LocalSubjectAccessReview:
		r.Status = s.userNamed(r.Spec.User).access(r.Spec.ResourceAttributes)
	case *authorizationv1.SelfSubjectAccessReview:
		r.Status = sender.access(r.Spec.ResourceAttributes)
	case *authorizationv1.SelfSubjectRulesReview:
		r.Status = sender.rules(r.Spec.Namespace)
	case *authenticationv1.SelfSubjectReview:
		r.Status.UserInfo.Username = sender.Name
	}
	return obj, nil
}

// access reports whether a user may send a request with some attributes. A request without a
// resource has none, and every user may send it.
func (u User) access(of *authorizationv1.ResourceAttributes) (
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
			of := schema.ParseGroupResource(whole)
			if text == "*" {
				of.Group = "*"
			}
			if below {
				of.Resource += "/" + subresource
			}
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: []string{of.Group}, Resources: []string{of.Resource},
				ResourceNames: rule.Names,
			})
		}
	}
	return status
}

// kubeletOnly are the subresources for which a real server asks a kubelet.
var kubeletOnly = map[string][]string{
	"pods": {"log", "exec", "attach", "portforward", "proxy"}, "nodes": {"proxy"},
}

// checkKubelet returns an error for a request that only a kubelet can answer.
func (x *exchange) checkKubelet() error {
	name, subresource := x.res.groupResource().String(), x.path.subresource
	if !slices.Contains(kubeletOnly[name], subresource) {
		return nil
	}
	if _, err := x.server.get(x.res, x.path.namespace, x.path.name); err != nil {
		return err
	}
	err := errGeneric(http.StatusNotImplemented, "")
	err.ErrStatus.Reason, err.ErrStatus.Message = "", fmt.Sprintf("%s/%s needs a kubelet, and this "+
		"server has none: it keeps objects and runs no containers", name, subresource)
	return err
}
