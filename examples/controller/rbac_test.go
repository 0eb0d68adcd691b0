package main

import (
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings/apisim"
)

// rules reads the rights of the manifest. A Role and a ClusterRole have the same fields.
func rules(t *testing.T) (all []apisim.Rule) {
	t.Helper()
	manifest, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.Role
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		of, err := apisim.RulesOf(role.Namespace, role.Rules)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, of...)
	}
	return all
}

// TestTheRolesAreWhatTheControllerNeeds runs the controller with the rights of the manifest.
func TestTheRolesAreWhatTheControllerNeeds(t *testing.T) {
	granted := rules(t)
	inWorld(t, func(w *world) {
		w.fatal(w.server.SetUsers(apisim.User{Name: "rollout", Token: "secret", Allow: granted}))
		w.token = "secret"
		w.create(deployment("web", 2))
		program := w.start("rollout")
		w.pass(5 * time.Second) // without the ConfigMap: an event
		_, err := apisim.Create(t.Context(), w.server, settings("one"))
		w.fatal(err)
		w.pass(5 * time.Second)
		for _, resource := range []string{"deployments.apps", "replicasets.apps"} {
			w.server.Inject(apisim.Match{Verb: "patch", Resource: resource, Times: 1},
				apisim.RefuseApplied(500))
		}
		w.editDeployment("web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 })
		w.pass(30 * time.Second)
		w.delete("web")
		w.pass(30 * time.Second)
		w.check(0)
		w.fatal(program.stop())
		w.fatal(w.server.Requests().CheckRights(granted,
			"create replicasets.apps",        // the simulated server asks for patch alone
			"get leases.coordination.k8s.io", // after a conflict
			"patch events.events.k8s.io",     // an event that comes again
		))
	})
}
