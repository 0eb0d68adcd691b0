package e2e

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/e2e/internal/follow"
)

var (
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
)

// install installs the definition of widgets, and returns when they are served.
func install(t *testing.T, client dynamic.Interface) {
	t.Helper()
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget",
				"listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
					"x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	if _, err := client.Resource(definitions).Create(t.Context(), definition,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := eventually(t.Context(), patience, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(widgets).List(ctx, metav1.ListOptions{})
		return err == nil, err
	})
	if err != nil {
		t.Fatalf("widgets are not served: %v", err)
	}
}

// uninstall deletes the definition of widgets, and returns when it has gone with them.
func uninstall(t *testing.T, client dynamic.Interface) {
	t.Helper()
	if err := client.Resource(definitions).Delete(t.Context(), "widgets.example.com",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := eventually(t.Context(), patience, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(definitions).Get(ctx, "widgets.example.com", metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
	if err != nil {
		t.Fatalf("the definition is still there: %v", err)
	}
}

func createWidget(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
	}}
	// A definition that has just been installed may refuse writes for a moment.
	err := eventually(t.Context(), patience, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(widgets).Namespace("default").Create(ctx, widget,
			metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitWidgets waits until the server has so many widgets, and every follower just those.
func awaitWidgets(t *testing.T, client dynamic.Interface, all []*follow.Follower, count int) {
	t.Helper()
	agree(t, all, func(ctx context.Context) (follow.State, error) {
		list, err := client.Resource(widgets).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		state := follow.State{}
		for _, w := range list.Items {
			state.Add(&w)
		}
		if len(state) != count {
			return nil, fmt.Errorf("the server has %d widgets, want %d", len(state), count)
		}
		return state, nil
	})
}

// allow lets the user "reader" list and watch config maps, or takes it back.
func allow(t *testing.T, client kubernetes.Interface, yes bool) {
	t.Helper()
	const name = "reads-config-maps"
	roles, bindings := client.RbacV1().ClusterRoles(), client.RbacV1().ClusterRoleBindings()
	var err error
	if !yes {
		err = bindings.Delete(t.Context(), name, metav1.DeleteOptions{})
	} else {
		_, err = roles.Create(t.Context(), &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{""},
				Resources: []string{"configmaps"}}},
		}, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			_, err = bindings.Create(t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole",
					Name: name},
				Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io",
					Name: "reader"}},
			}, metav1.CreateOptions{})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
