package clientgo_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	deploymentsResource = appsv1.SchemeGroupVersion.WithResource("deployments")
	configMapsResource  = corev1.SchemeGroupVersion.WithResource("configmaps")
	namespacesResource  = corev1.SchemeGroupVersion.WithResource("namespaces")
	budgetsResource     = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
)

// TestOnlyTheImportsDiffer builds every program twice, with Tidings' import paths and
// with client-go's, leads both through the same events, and compares their output,
// byte for byte. Each script also has that output, so that both cannot be wrong.
func TestOnlyTheImportsDiffer(t *testing.T) {
	ours, original := build(t), buildOriginal(t)
	for _, test := range []struct {
		name   string
		script func(t *testing.T, binaries string) (stdout string)
	}{
		{"workqueue", keepImageLists},
		{"manager", manage},
		{"manager without a resource", manageWithoutBudgets},
		{"customtype", followWidgets},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			printed := map[string]string{}
			for name, binaries := range map[string]string{"tidings": ours, "client-go": original} {
				t.Run(name, func(t *testing.T) { printed[name] = test.script(t, binaries) })
			}
			if t.Failed() {
				return
			}
			if printed["tidings"] != printed["client-go"] {
				t.Errorf("with Tidings:\n%s\nwith client-go:\n%s", printed["tidings"], printed["client-go"])
			}
		})
	}
}

func deployment(namespace, name string, replicas int32, images ...string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
	setImages(d, images...)
	return d
}

func setImages(d *appsv1.Deployment, images ...string) {
	d.Spec.Template.Spec.Containers = nil
	for i, image := range images {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers,
			corev1.Container{Name: string(rune('a' + i)), Image: image})
	}
}
