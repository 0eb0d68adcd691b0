package clientgo_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func manage(t *testing.T, binaries string) string {
	c := newCluster(t, nil)
	c.create(deployment("default", "web", 3, "registry.example/web:1"))
	p := c.start(binaries, "manager", "--workers", "3", "--listen", "127.0.0.1:0")
	p.expect("started budgets")
	p.expect("started replicas")
	p.expect("started teams")
	p.expect("replicas: default/web asks for 3, 3 in all")

	c.create(deployment("default", "api", 2, "registry.example/api:1"))
	p.expect("replicas: default/api asks for 2, 5 in all")
	edit(c, deploymentsResource, "default", "web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 4 })
	p.expect("replicas: default/web asks for 4, 6 in all")

	address, ok := strings.CutPrefix(p.next(p.notes), "pages at ")
	if !ok {
		p.fail("it did not say where its pages are")
	}
	if got, want := p.page(address+"/replicas"), "default/api 2\ndefault/web 4\n"; got != want {
		t.Errorf("the page of the counts is %q, not %q", got, want)
	}

	minimum := intstr.FromInt32(1)
	c.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &minimum, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	p.expect("budgets: default/web protects 1 of 2 deployments")
	edit(c, budgetsResource, "default", "web", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} })
	p.expect("budgets: default/web protects 2 of 2 deployments")
	c.delete(budgetsResource, "default", "web")
	p.expect("budgets: default/web is gone")

	c.delete(deploymentsResource, "default", "api")
	p.expect("replicas: default/api is gone, 4 in all")
	edit(c, namespacesResource, "", "default", func(n *corev1.Namespace) { n.Labels = map[string]string{"team": "shop"} })
	p.expect("teams: default/web belongs to shop")
	obj, err := c.server.Get(t.Context(), deploymentsResource, "default", "web")
	if err != nil {
		t.Fatal(err)
	}
	if got := obj.(*appsv1.Deployment).Labels["team"]; got != "shop" {
		t.Errorf("on the server the label is %q", got)
	}
	return p.interrupt()
}

func manageWithoutBudgets(t *testing.T, binaries string) string {
	c := newCluster(t, nil)
	c.server.RemoveResource(budgetsResource)
	c.create(deployment("default", "web", 3, "registry.example/web:1"))
	p := c.start(binaries, "manager", "--controllers", "*,-teams")
	p.expect("skipped budgets: the server lacks its resource")
	p.expect("started replicas")
	p.expect("replicas: default/web asks for 3, 3 in all")
	for _, request := range c.server.Requests() {
		if request.Resource == budgetsResource || request.Resource == namespacesResource {
			t.Errorf("it did %s %v, which no started controller needs", request.Verb, request.Resource)
		}
	}
	return p.interrupt()
}
