package apisim

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestUsers(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		if err := b.server.SetUsers(
			User{Name: "reader", Token: "r", Allow: []Rule{{Verbs: []string{"get", "list", "watch"}, Resources: []string{"configmaps", "deployments.apps"}}}},
			User{Name: "local", Token: "l", Allow: []Rule{{Verbs: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"default"}}}},
			User{Name: "named", Token: "n", Allow: []Rule{{Verbs: []string{"get", "watch"}, Resources: []string{"configmaps"}, Names: []string{"a"}}, {Verbs: []string{"update"}, Resources: []string{"pods/status"}}}},
			User{Name: "nobody", Token: "x"},
		); err != nil {
			b.Fatal(err)
		}
		const maps = "/api/v1/namespaces/default/configmaps"
		for _, test := range []struct {
			token, method, path string
			code                int
			says                string
		}{
			{"", "GET", maps, 401, "Unauthorized"},
			{"wrong", "GET", maps, 401, "Unauthorized"},
			{"", "GET", "/apis", 401, "Unauthorized"},
			{"", "GET", "/readyz", 200, "ok"},
			{"x", "GET", "/apis", 200, "apps"},
			{"x", "GET", "/apis/apps/v1", 200, "deployments"},
			{"x", "GET", maps, 403, `configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\"`},
			{"x", "GET", "/apis/example.com/v1/widgets", 403, `cannot list resource \"widgets\" in API group \"example.com\" at the cluster scope`},
			{"r", "GET", maps, 200, "ConfigMapList"},
			{"r", "GET", "/api/v1/configmaps", 200, "ConfigMapList"},
			{"r", "GET", "/apis/apps/v1/deployments", 200, "DeploymentList"},
			{"r", "GET", "/api/v1/pods", 403, "cannot list resource"},
			{"r", "DELETE", maps + "/a", 403, `configmaps \"a\" is forbidden: User \"reader\" cannot delete`},
			{"r", "DELETE", maps, 403, "cannot deletecollection"},
			{"r", "PATCH", maps + "/a", 403, "cannot patch"},
			{"l", "GET", maps + "/a", 200, "ConfigMap"},
			{"l", "GET", "/api/v1/configmaps", 403, "at the cluster scope"},
			{"l", "GET", "/api/v1/namespaces/kube-system/configmaps", 403, "kube-system"},
			{"n", "GET", maps + "/a", 200, "ConfigMap"},
			{"n", "GET", maps + "/b", 403, `configmaps \"b\" is forbidden`},
			{"n", "GET", maps + "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da", 200, ""},
			{"n", "GET", maps + "?watch=1", 403, "cannot watch"},
			{"n", "GET", maps + "?watch=1&fieldSelector=%3D%3D%3D", 403, "cannot watch"},
			{"n", "PUT", "/api/v1/namespaces/default/pods/p/status", 400, ""},
			{"n", "PUT", "/api/v1/namespaces/default/pods/p", 403, ""},
			{"x", "PUT", "/api/v1/namespaces/default/pods/p/status", 403, `cannot update resource \"pods/status\"`},
		} {
			var header []string
			if test.token != "" {
				header = []string{"Authorization", "Bearer " + test.token}
			}
			code, text := b.get(test.method, test.path, "", header...)
			if code != test.code || !strings.Contains(text, test.says) {
				b.Errorf("%s %s as %q: %d %s, want %d %s", test.method, test.path, test.token, code, text, test.code, test.says)
			}
		}
		b.must(b.server.SetUsers())
		if code, text := b.get("GET", maps, ""); code != 200 {
			b.Errorf("without users: %d %s", code, text)
		}
		if err := b.server.SetUsers(User{Name: "a"}); err == nil {
			b.Error("a user without a token was taken")
		}
		if err := b.server.SetUsers(User{Name: "a", Token: "t"}, User{Name: "b", Token: "t"}); err == nil {
			b.Error("two users with one token were taken")
		}
	})
}

func TestUsersAreData(t *testing.T) {
	want := User{Name: "reader", Token: "secret", Allow: []Rule{{
		Verbs: []string{"get"}, Resources: []string{"pods"}, Namespaces: []string{"default"}, Names: []string{"a"},
	}}}
	const text = `{name: reader, token: secret, allow: [{verbs: [get], resources: [pods], namespaces: [default], names: [a]}]}`
	var got User
	if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRulesOfRoles(t *testing.T) {
	got, err := RulesOf("shop", []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{"", "apps"}, Resources: []string{"pods", "scales/status"},
			ResourceNames: []string{"a"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	})
	want := []Rule{
		{Verbs: []string{"get"}, Namespaces: []string{"shop"}, Names: []string{"a"},
			Resources: []string{"pods", "scales/status", "pods.apps", "scales.apps/status"}},
		{Verbs: []string{"*"}, Namespaces: []string{"shop"}, Resources: []string{"*"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, r := range []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"*"}},
		{Verbs: []string{"get"}, APIGroups: []string{"*"}, Resources: []string{"pods"}},
	} {
		if got, err := RulesOf("", []rbacv1.PolicyRule{r}); err == nil {
			t.Errorf("%v: got %v, want an error", r, got)
		}
	}
}

// TestCheckRights: a right too few and a right too many are named, and nothing else.
func TestCheckRights(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	requests := Requests{
		{Verb: "list", Resource: pods, Status: 200}, {Verb: "update", Resource: pods, Subresource: "status", Status: 409},
		{Verb: "delete", Resource: pods, Name: "a", Status: 403},
	}
	rules := []Rule{
		{Verbs: []string{"list", "watch"}, Resources: []string{"pods"}},
		{Verbs: []string{"update", "patch"}, Resources: []string{"pods/status"}},
		{Verbs: []string{"*"}, Resources: []string{"*"}},
	}
	const want = `apisim: the rules do not allow delete pods name=a 403
apisim: no request needs the right "watch pods"`
	if err := requests.CheckRights(rules, "patch pods/status"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := requests[:2].CheckRights(rules, "patch pods/status", "watch pods"); err != nil {
		t.Error(err)
	}
}
