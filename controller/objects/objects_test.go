package objects_test

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller/objects"
)

const finalizer = "example.com/test"

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve runs a test in a bubble with a server that has the ConfigMap default/x.
func serve(t *testing.T, test func(*testing.T, *apisim.Server, *corev1.ConfigMap)) {
	synctest.Test(t, func(t *testing.T) {
		server := apisim.Start(t)
		made, err := apisim.Create(t.Context(), server, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x",
				Finalizers: []string{"a/b"}},
		})
		fatal(t, err)
		test(t, server, made)
	})
}

// writes counts the requests that a test has sent to change an object.
func writes(server *apisim.Server) (n int) {
	for _, r := range server.Requests() {
		if slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb) {
			n++
		}
	}
	return n
}

// checkFinalizers adds and removes a finalizer with a client of any kind.
func checkFinalizers[T objects.Object](
	t *testing.T, server *apisim.Server, client objects.Patcher[T], object T,
) {
	t.Helper()
	server.ForgetRequests()
	present := func() []string {
		t.Helper()
		now, err := apisim.Get[*corev1.ConfigMap](t.Context(), server, "default", "x")
		fatal(t, err)
		return now.Finalizers
	}
	with, err := objects.AddFinalizer(t.Context(), client, object, finalizer)
	fatal(t, err)
	if want := []string{"a/b", finalizer}; !slices.Equal(with.GetFinalizers(), want) ||
		!slices.Equal(present(), want) {
		t.Errorf("after AddFinalizer: %q, on the server %q", with.GetFinalizers(), present())
	}
	_, err = objects.AddFinalizer(t.Context(), client, with, finalizer)
	if err != nil || writes(server) != 1 {
		t.Errorf("a finalizer that is there: %v, and %d writes", err, writes(server))
	}
	_, err = objects.AddFinalizer(t.Context(), client, object, finalizer)
	if !apierrors.IsConflict(err) {
		t.Errorf("the object is of an earlier version, and the error is %v", err)
	}
	proxy := server.Inject(apisim.Match{Verb: "patch"}, apisim.Answer(func(w http.ResponseWriter, _ *http.Request) {
		http.NotFound(w, nil)
	}))
	if _, err = objects.RemoveFinalizer(t.Context(), client, with, finalizer); err == nil {
		t.Error("the page of a proxy means that the object is gone")
	}
	proxy.Lift()
	without, err := objects.RemoveFinalizer(t.Context(), client, with, finalizer)
	fatal(t, err)
	if want := []string{"a/b"}; !slices.Equal(without.GetFinalizers(), want) ||
		!slices.Equal(present(), want) {
		t.Errorf("after RemoveFinalizer: %q, on the server %q", without.GetFinalizers(), present())
	}
	server.ForgetRequests()
	_, err = objects.RemoveFinalizer(t.Context(), client, without, finalizer)
	if err != nil || writes(server) != 0 {
		t.Errorf("a finalizer that is not there: %v, and %d writes", err, writes(server))
	}
}

func TestFinalizersWithATypedClient(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, x *corev1.ConfigMap) {
		client, err := kubernetes.NewForConfig(server.Config())
		fatal(t, err)
		checkFinalizers(t, server, client.CoreV1().ConfigMaps("default"), x)
	})
}

func TestFinalizersWithADynamicClient(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, _ *corev1.ConfigMap) {
		client, err := dynamic.NewForConfig(server.Config())
		fatal(t, err)
		resource := client.Resource(configMaps).Namespace("default")
		x, err := resource.Get(t.Context(), "x", metav1.GetOptions{})
		fatal(t, err)
		checkFinalizers[*unstructured.Unstructured](t, server, resource, x)
	})
}

func TestFinalizersWithAMetadataClient(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, _ *corev1.ConfigMap) {
		client, err := metadata.NewForConfig(server.Config())
		fatal(t, err)
		resource := client.Resource(configMaps).Namespace("default")
		x, err := resource.Get(t.Context(), "x", metav1.GetOptions{})
		fatal(t, err)
		checkFinalizers[*metav1.PartialObjectMetadata](t, server, resource, x)
	})
}

func TestRemovingTheLastFinalizerOfAnObjectInDeletion(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, x *corev1.ConfigMap) {
		client, err := kubernetes.NewForConfig(server.Config())
		fatal(t, err)
		resource := client.CoreV1().ConfigMaps("default")
		fatal(t, resource.Delete(t.Context(), "x", metav1.DeleteOptions{}))
		ending, err := resource.Get(t.Context(), "x", metav1.GetOptions{})
		fatal(t, err)
		_, err = objects.RemoveFinalizer(t.Context(), resource, x, "a/b")
		if !apierrors.IsConflict(err) {
			t.Errorf("the version is that of before the delete, and the error is %v", err)
		}
		_, err = objects.RemoveFinalizer(t.Context(), resource, ending, "a/b")
		fatal(t, err)
		_, err = resource.Get(t.Context(), "x", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("the object is still there: %v", err)
		}
		if _, err := objects.RemoveFinalizer(t.Context(), resource, ending, "a/b"); err != nil {
			t.Errorf("the object is gone, and the error is %v", err)
		}
	})
}

func TestUpdateStatus(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, _ *corev1.ConfigMap) {
		labels := map[string]string{"app": "web"}
		web, err := apisim.Create(t.Context(), server, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
			},
		})
		fatal(t, err)
		client, err := kubernetes.NewForConfig(server.Config())
		fatal(t, err)
		resource := client.AppsV1().Deployments("default")
		set := func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 3 }
		changed, err := objects.UpdateStatus(t.Context(), resource, web, set)
		fatal(t, err)
		if changed.Status.ReadyReplicas != 3 || web.Status.ReadyReplicas != 0 {
			t.Errorf("the answer has %d, the cached object %d", changed.Status.ReadyReplicas,
				web.Status.ReadyReplicas)
		}
		server.ForgetRequests()
		again, err := objects.UpdateStatus(t.Context(), resource, changed, set)
		if err != nil || again != changed || writes(server) != 0 {
			t.Errorf("a status that is equal: %v, and %d writes", err, writes(server))
		}
		_, err = objects.UpdateStatus(t.Context(), resource, web, set)
		if !apierrors.IsConflict(err) {
			t.Errorf("the object is of an earlier version, and the error is %v", err)
		}
	})
}

// TestUpdateStatusAfterAFinalizer: a call that writes both goes on with the object that the first
// write returned. The cached one is in conflict.
func TestUpdateStatusAfterAFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apisim.Start(t)
		cached, err := apisim.Create(t.Context(), server, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"},
		})
		fatal(t, err)
		client, err := kubernetes.NewForConfig(server.Config())
		fatal(t, err)
		resource := client.AppsV1().Deployments("default")
		held, err := objects.AddFinalizer(t.Context(), resource, cached, finalizer)
		fatal(t, err)
		set := func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }
		if _, err = objects.UpdateStatus(t.Context(), resource, cached, set); !apierrors.IsConflict(err) {
			t.Errorf("with the cached object the error is %v, want a conflict", err)
		}
		written, err := objects.UpdateStatus(t.Context(), resource, held, set)
		fatal(t, err)
		if written.Status.ReadyReplicas != 1 || !slices.Contains(written.Finalizers, finalizer) {
			t.Errorf("the object is %+v", written)
		}
	})
}

func TestApply(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, x *corev1.ConfigMap) {
		client, err := kubernetes.NewForConfig(server.Config())
		fatal(t, err)
		resource := client.CoreV1().ConfigMaps("default")
		apply := func(cached *corev1.ConfigMap, value string) *corev1.ConfigMap {
			t.Helper()
			wanted := applycorev1.ConfigMap("owned", "default").
				WithOwnerReferences(objects.ControllerRef(x,
					corev1.SchemeGroupVersion.WithKind("ConfigMap"))).
				WithData(map[string]string{"key": value})
			server.ForgetRequests()
			got, err := objects.Apply(t.Context(), resource, "test", wanted, cached,
				applycorev1.ExtractConfigMap)
			fatal(t, err)
			if got.Data["key"] != value || !metav1.IsControlledBy(got, x) {
				t.Errorf("applied %s: %v, owners %v", value, got.Data, got.OwnerReferences)
			}
			return got
		}
		made := apply(nil, "one")
		if again := apply(made, "one"); again != made || writes(server) != 0 {
			t.Errorf("what is applied already: %d writes", writes(server))
		}
		changed := made.DeepCopy()
		changed.Data["key"] = "theirs"
		theirs, err := resource.Update(t.Context(), changed,
			metav1.UpdateOptions{FieldManager: "other"})
		fatal(t, err)
		if apply(theirs, "one"); writes(server) != 1 {
			t.Errorf("after another manager's write: %d writes", writes(server))
		}
	})
}

// TestApplyOfZeroValues: those that the object does not keep lead to no request, and those that it
// keeps do.
func TestApplyOfZeroValues(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, _ *corev1.ConfigMap) {
		client, err := kubernetes.NewForConfig(server.Config())
		fatal(t, err)
		resource := client.AppsV1().ReplicaSets("default")
		apply := func(cached *appsv1.ReplicaSet, replicas int32, value string) (*appsv1.ReplicaSet, int) {
			t.Helper()
			container := applycorev1.Container().WithName("c").WithStdin(false).WithWorkingDir("").
				WithEnv(applycorev1.EnvVar().WithName("E").WithValue(value)).
				WithVolumeMounts(applycorev1.VolumeMount().WithName("v").WithMountPath("/v").WithReadOnly(false))
			wanted := applyappsv1.ReplicaSet("owned", "default").WithSpec(applyappsv1.ReplicaSetSpec().WithReplicas(replicas).
				WithTemplate(applycorev1.PodTemplateSpec().WithSpec(applycorev1.PodSpec().WithContainers(container))))
			server.ForgetRequests()
			got, err := objects.Apply(t.Context(), resource, "test", wanted, cached, applyappsv1.ExtractReplicaSet)
			fatal(t, err)
			return got, writes(server)
		}
		set, _ := apply(nil, 0, "")
		for _, step := range []struct {
			replicas int32
			value    string
			writes   int
		}{{0, "", 0}, {1, "", 1}, {1, "", 0}, {0, "", 1}, {0, "set", 1}, {0, "", 1}, {0, "", 0}} {
			var n int
			if set, n = apply(set, step.replicas, step.value); n != step.writes {
				t.Errorf("%+v: %d writes", step, n)
			}
		}
	})
}
