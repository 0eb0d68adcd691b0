package apisim

import (
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// attributes reads "get pods/log default/web", the last part being optional.
func attributes(text string) *authorizationv1.ResourceAttributes {
	parts := append(strings.Fields(text), "", "")
	a := &authorizationv1.ResourceAttributes{Verb: parts[0]}
	whole, subresource, _ := strings.Cut(parts[1], "/")
	a.Resource, a.Group, _ = strings.Cut(whole, ".")
	a.Subresource = subresource
	a.Namespace, a.Name, _ = strings.Cut(parts[2], "/")
	return a
}

// as returns a client with the token of a user.
func (b *bench) as(token string) kubernetes.Interface {
	b.Helper()
	c := config(b.server, "")
	c.BearerToken = token
	client, err := kubernetes.NewForConfig(c)
	b.must(err)
	return client
}

func TestAccessReviews(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.must(b.server.SetUsers(
			User{Name: "reader", Token: "r", Allow: []Rule{
				{Verbs: []string{"get", "list"}, Resources: []string{"pods", "pods/log", "deployments.apps"}, Namespaces: []string{"default"}},
				{Verbs: []string{"update"}, Resources: []string{"widgets.example.com/scale"}, Names: []string{"gear"}},
			}},
			User{Name: "admin", Token: "a", Allow: []Rule{{Verbs: []string{"*"}, Resources: []string{"*"}}}},
		))
		of := authorizationv1.SelfSubjectAccessReviewSpec{}
		reader, admin := b.as("r"), b.as("a")
		for text, want := range map[string]bool{
			"list pods default": true, "get pods default/a": true, "get pods/log default": true,
			"list deployments.apps default": true, "list pods": false, "list pods other": false,
			"delete pods default": false, "list deployments default": false, "get pods/exec default": false,
			"update widgets.example.com/scale default/gear": true, "update widgets.example.com/scale default/bolt": false,
			"* * default": false, "create selfsubjectaccessreviews.authorization.k8s.io": true,
		} {
			of.ResourceAttributes = attributes(text)
			given := &authorizationv1.SelfSubjectAccessReview{Spec: of}
			self, err := reader.AuthorizationV1().SelfSubjectAccessReviews().Create(b.ctx, given, metav1.CreateOptions{})
			if b.must(err); self.Status.Allowed != want || (self.Status.Reason == "") != want {
				b.Errorf("%s: %+v", text, self.Status)
			}
			other := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "reader", ResourceAttributes: of.ResourceAttributes}}
			said, err := admin.AuthorizationV1().SubjectAccessReviews().Create(b.ctx, other, metav1.CreateOptions{})
			if b.must(err); said.Status != self.Status {
				b.Errorf("%s: of another %+v, of oneself %+v", text, said.Status, self.Status)
			}
			local := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: other.Spec}
			here, err := admin.AuthorizationV1().LocalSubjectAccessReviews("default").Create(b.ctx, local, metav1.CreateOptions{})
			if b.must(err); here.Status != self.Status {
				b.Errorf("%s: of a namespace %+v, of oneself %+v", text, here.Status, self.Status)
			}
		}
		unknown := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "x", ResourceAttributes: attributes("get pods default")}}
		said, err := admin.AuthorizationV1().SubjectAccessReviews().Create(b.ctx, unknown, metav1.CreateOptions{})
		if b.must(err); said.Status.Allowed || said.Status.Reason != `no rule of the user "x" allows it` {
			b.Errorf("an unknown user: %+v", said.Status)
		}
		if _, err := reader.AuthorizationV1().SubjectAccessReviews().Create(b.ctx, unknown, metav1.CreateOptions{}); !isStatus(err, 403, metav1.StatusReasonForbidden) {
			b.Errorf("a review of another user: %v", err)
		}
		who, err := reader.AuthenticationV1().SelfSubjectReviews().Create(b.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if b.must(err); who.Status.UserInfo.Username != "reader" {
			b.Errorf("the sender is %+v", who.Status)
		}
		rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}
		can, err := reader.AuthorizationV1().SelfSubjectRulesReviews().Create(b.ctx, rules, metav1.CreateOptions{})
		b.must(err)
		var lines []string
		for _, r := range can.Status.ResourceRules {
			lines = append(lines, fmt.Sprint(r.Verbs, r.APIGroups, r.Resources, r.ResourceNames))
		}
		b.want("rules", lines, "[get list] [] [pods] []", "[get list] [] [pods/log] []", "[get list] [apps] [deployments] []", "[update] [example.com] [widgets/scale] [gear]")
		rules.Spec.Namespace = "other"
		can, err = reader.AuthorizationV1().SelfSubjectRulesReviews().Create(b.ctx, rules, metav1.CreateOptions{})
		if b.must(err); len(can.Status.ResourceRules) != 1 {
			b.Errorf("the rules in another namespace are %+v", can.Status)
		}
	})
}

func TestAccessReviewsWithoutUsers(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		given := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes("* *")}}
		for _, server := range []string{"protobuf", "json"} {
			client, err := kubernetes.NewForConfig(config(b.server, "application/"+strings.Replace(server, "protobuf", "vnd.kubernetes.protobuf", 1)))
			b.must(err)
			said, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(b.ctx, given, metav1.CreateOptions{})
			if b.must(err); !said.Status.Allowed {
				b.Errorf("%s: %+v", server, said.Status)
			}
		}
		b.ask("",
			ask{"GET /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", 405, "MethodNotAllowed"},
			ask{"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{"apiVersion":"v1","kind":"Pod"}`, 400, "BadRequest"},
			ask{"POST /apis/authorization.k8s.io/v1/subjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"x","nonResourceAttributes":{"path":"/x","verb":"get"}}}`, 201, `"allowed":true`},
		)
	})
}

func TestWhatOnlyAKubeletAnswers(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.seed(pod("web"), nodeNamed("n"))
		const pods, says = "/api/v1/namespaces/default/pods/web", "needs a kubelet, and this server has none"
		b.ask("",
			ask{"GET " + pods + "/log", "", 501, "pods/log " + says},
			ask{"POST " + pods + "/exec?command=ls", "", 501, "pods/exec " + says},
			ask{"GET " + pods + "/attach", "", 501, says},
			ask{"POST " + pods + "/portforward", "", 501, says},
			ask{"GET /api/v1/nodes/n/proxy", "", 501, "nodes/proxy " + says},
			ask{"GET /api/v1/namespaces/default/pods/none/log", "", 404, `pods \"none\" not found`},
			ask{"GET " + pods + "/none", "", 404, "could not find the requested resource"},
		)
	})
}
