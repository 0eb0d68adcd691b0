package controller

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/tidings-go/tidings/examples/kubebuilder/api/v1alpha1"
)

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func(ctx context.Context) (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, holds)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestMemcached scales servers and lets them become ready. No controllers run on the server, so
// the test writes the status of the Deployment.
func TestMemcached(t *testing.T) {
	memcached := &cachev1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "store-"},
		Spec:       cachev1alpha1.MemcachedSpec{Size: new(int32(2))},
	}
	if err := k8sClient.Create(t.Context(), memcached); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(memcached)
	t.Cleanup(func() {
		if err := k8sClient.Delete(context.Background(), memcached); err != nil {
			t.Error(err)
		}
	})
	var servers appsv1.Deployment
	hasReplicas := func(n int32) {
		t.Helper()
		eventually(t, "the Deployment", func(ctx context.Context) (bool, error) {
			err := k8sClient.Get(ctx, key, &servers)
			return err == nil && *servers.Spec.Replicas == n, client.IgnoreNotFound(err)
		})
	}
	isAvailable := func(status metav1.ConditionStatus) {
		t.Helper()
		eventually(t, "the condition Available", func(ctx context.Context) (bool, error) {
			err := k8sClient.Get(ctx, key, memcached)
			of := memcached.Status.Conditions
			c := meta.FindStatusCondition(of, cachev1alpha1.ConditionAvailable)
			return c != nil && c.Status == status && c.ObservedGeneration == memcached.Generation, err
		})
	}

	hasReplicas(2)
	if !metav1.IsControlledBy(&servers, memcached) {
		t.Error("the Memcached does not own the Deployment")
	}
	isAvailable(metav1.ConditionFalse)

	servers.Status.Replicas, servers.Status.ReadyReplicas = 2, 2
	if err := k8sClient.Status().Update(t.Context(), &servers); err != nil {
		t.Fatal(err)
	}
	isAvailable(metav1.ConditionTrue)
	if memcached.Status.Ready != 2 {
		t.Errorf("the status reports %d ready servers, want 2", memcached.Status.Ready)
	}

	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := k8sClient.Get(t.Context(), key, memcached); err != nil {
			return err
		}
		memcached.Spec.Size = new(int32(3))
		return k8sClient.Update(t.Context(), memcached)
	})
	if err != nil {
		t.Fatal(err)
	}
	hasReplicas(3)
	isAvailable(metav1.ConditionFalse)
}

// TestTheDefaultSize is that of a server without defaults, too.
func TestTheDefaultSize(t *testing.T) {
	if got := size(&cachev1alpha1.Memcached{}); got != 1 {
		t.Errorf("got %d servers, want 1", got)
	}
}
