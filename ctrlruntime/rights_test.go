package ctrlruntime_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// TestTheRoleIsWhatACacheAndAClientNeed reads and writes with the rights of the manifest. No request
// is refused, and each right is used.
func TestTheRoleIsWhatACacheAndAClientNeed(t *testing.T) {
	manifest, err := os.ReadFile("testdata/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.Role
	if err := yaml.UnmarshalStrict(manifest, &role); err != nil {
		t.Fatal(err)
	}
	rules, err := apisim.RulesOf(role.Namespace, role.Rules)
	if err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]cache.Config{role.Namespace: {}}
	synctest.Test(t, func(t *testing.T) {
		w := &clientWorld{world: newWorld(t, cache.Options{DefaultNamespaces: namespaces})}
		w.must(w.server.SetUsers(apisim.User{Name: "operator", Token: "secret", Allow: rules}))
		w.config.BearerToken = "secret"
		w.server.RefuseStreamedLists(true) // which count as watches
		w.make(ctrlruntime.NewCache)
		w.start()
		w.client = w.newClient(ctrlruntime.NewClient)
		in := client.InNamespace(role.Namespace)
		w.must(w.client.List(w.Context(), &corev1.SecretList{}, in))
		m := configMap(role.Namespace, "x", nil)
		w.absent(m)
		w.must(w.client.Create(w.Context(), m))
		w.reads(m, false, 0, time.Minute)
		w.server.Inject(apisim.Match{Verb: "update", Times: 1}, apisim.RefuseApplied(500))
		if err := w.client.Update(w.Context(), labelled(m.DeepCopy(), "2")); err == nil {
			t.Fatal("the write has no error")
		}
		w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), m)) // which asks the server first
		if m.Labels["written-by"] != "2" {
			t.Errorf("the labels are %v", m.Labels)
		}
		w.must(w.client.Delete(w.Context(), m))
		w.reads(m, true, 0, time.Minute)
		w.must(w.server.Requests().CheckRights(rules))
	})
}
