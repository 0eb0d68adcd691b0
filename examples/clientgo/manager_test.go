package clientgo_test

import (
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
	p := c.start(binaries, "manager", "--workers", "3")
	p.expect("started budgets")
	p.expect("started teams")

	minimum := intstr.FromInt32(1)
	c.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &minimum, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	p.expect("budgets: default/web protects 1 of 1 deployments")
	c.delete(budgetsResource, "default", "web")
	p.expect("budgets: default/web is gone")

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
	c.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}},
		deployment("shop", "web", 3, "registry.example/web:1"))
	p := c.start(binaries, "manager", "--controllers", "*")
	p.expect("skipped budgets: the server lacks its resource")
	p.expect("started teams")
	p.expect("teams: shop/web belongs to shop")
	for _, request := range c.server.Requests() {
		if request.Resource == budgetsResource {
			t.Errorf("it did %s %v, which no started controller needs", request.Verb, request.Resource)
		}
	}
	return p.interrupt()
}
