package main

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tidings-go/tidings/apisim"
)

// namespace and name are those of the operator in config/default.
const (
	namespace = "memcached-system"
	name      = "memcached-controller-manager"
)

// deployed returns a server with the objects that kustomize builds from config/default. Unknown
// fields are errors.
func deployed(t *testing.T) *apisim.Server {
	t.Helper()
	kustomizer := krusty.MakeKustomizer(krusty.MakeDefaultOptions())
	built, err := kustomizer.Run(filesys.MakeFsOnDisk(), "../config/default")
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	server := apisim.Start(t)
	if err := server.LoadFrom("config/default", bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return server
}

// get returns an object that the server must have.
func get[T runtime.Object](t *testing.T, server *apisim.Server, namespace, name string) T {
	t.Helper()
	obj, err := apisim.Get[T](t.Context(), server, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestTheManifests(t *testing.T) {
	server := deployed(t)
	deployment := get[*appsv1.Deployment](t, server, namespace, name)
	budget := get[*policyv1.PodDisruptionBudget](t, server, namespace, name)
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	template := deployment.Spec.Template
	if !selector.Matches(labels.Set(template.Labels)) {
		t.Errorf("the disruption budget of %v is not for pods with the labels %v",
			selector, template.Labels)
	}
	if int(*deployment.Spec.Replicas) <= budget.Spec.MinAvailable.IntValue() {
		t.Error("the disruption budget allows no eviction: a drain of a node would wait forever")
	}
	// 30 s is the default of ctrl.Options.GracefulShutdownTimeout.
	if grace := *template.Spec.TerminationGracePeriodSeconds; grace <= 30 {
		t.Errorf("the pod is killed after %d s, before its manager has ended", grace)
	}
	container := template.Spec.Containers[0]
	if container.LivenessProbe == nil || container.ReadinessProbe == nil {
		t.Error("the container lacks a probe")
	}
	if !slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool {
		return e.Name == "POD_NAMESPACE" && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace"
	}) {
		t.Error("POD_NAMESPACE is not the namespace of the pod")
	}
	sample := apisim.Start(t)
	if err := sample.Load("../config/crd/bases", "../config/samples"); err != nil {
		t.Error(err)
	}
}

// granted returns the rights of the service account of the Deployment, by its bindings.
func granted(t *testing.T, server *apisim.Server) (all []apisim.Rule) {
	t.Helper()
	account := rbacv1.Subject{
		Kind: "ServiceAccount", Namespace: namespace,
		Name: get[*appsv1.Deployment](t, server, namespace, name).Spec.Template.Spec.ServiceAccountName,
	}
	add := func(namespace string, rules []rbacv1.PolicyRule, subjects []rbacv1.Subject) {
		t.Helper()
		if !slices.Contains(subjects, account) {
			t.Errorf("the binding of %v is not for %v", subjects, account)
		}
		of, err := apisim.RulesOf(namespace, rules)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, of...)
	}
	manager := get[*rbacv1.ClusterRoleBinding](t, server, "", "memcached-manager-rolebinding")
	cluster := get[*rbacv1.ClusterRole](t, server, "", manager.RoleRef.Name)
	add("", cluster.Rules, manager.Subjects)
	election := get[*rbacv1.RoleBinding](t, server, namespace, "memcached-election-rolebinding")
	role := get[*rbacv1.Role](t, server, namespace, election.RoleRef.Name)
	add(namespace, role.Rules, election.Subjects)
	return all
}

// TestTheRolesAreWhatTheOperatorNeeds runs the operator with the rights of the manifests. No request
// is refused, and each right is used.
func TestTheRolesAreWhatTheOperatorNeeds(t *testing.T) {
	server := deployed(t)
	server.RefuseStreamedLists(true) // which count as watches
	rights := granted(t, server)
	err := server.SetUsers(apisim.User{Name: name, Token: "secret", Allow: rights})
	if err != nil {
		t.Fatal(err)
	}
	config := server.Config()
	config.BearerToken = "secret"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o := options{metrics: "0", probes: "0", elect: true, namespace: namespace, again: true}
		if err := run(ctx, config, o); err != nil {
			t.Error(err)
		}
	}()
	// The client asks whether these writes were applied.
	for verb, resource := range map[string]string{
		"create": "deployments.apps", "update": "memcacheds.cache.example.com/status",
	} {
		server.Inject(apisim.Match{Verb: verb, Resource: resource, Times: 1},
			apisim.RefuseApplied(http.StatusInternalServerError))
	}
	if err := server.Load("../config/samples"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Deployment", func(ctx context.Context) bool {
		_, err := apisim.Get[*appsv1.Deployment](ctx, server, "default", "store")
		return err == nil
	})
	servers := get[*appsv1.Deployment](t, server, "default", "store")
	servers.Spec.Replicas = new(int32(1))
	if _, err := apisim.Update(t.Context(), server, servers); err != nil {
		t.Fatal(err)
	}
	awaited := []apisim.Match{
		{Verb: "create", Resource: "events"}, // of the election
		{Verb: "create", Resource: "events.events.k8s.io"},
		{Verb: "get", Resource: "deployments.apps"}, // was it written?
		{Verb: "get", Resource: "memcacheds.cache.example.com"},
	}
	eventually(t, "three replicas, and all requests", func(ctx context.Context) bool {
		servers, err := apisim.Get[*appsv1.Deployment](ctx, server, "default", "store")
		requests := server.Requests()
		return err == nil && *servers.Spec.Replicas == 3 &&
			!slices.ContainsFunc(awaited, func(m apisim.Match) bool { return len(requests.Of(m)) == 0 })
	})
	cancel()
	<-ended
	err = server.Requests().CheckRights(rights,
		"patch events", "patch events.events.k8s.io", // for an event that comes again
		"update memcacheds.cache.example.com/finalizers", // the simulator has no admission
	)
	if err != nil {
		t.Error(err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func(ctx context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) { return holds(ctx), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
