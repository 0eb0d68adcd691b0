package objects

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// meta returns the metadata of an object that belongs to the workload of its number.
func meta(what string, number int) metav1.ObjectMeta {
	w := workloadOf(number)
	r := randomOf(what, number)
	created := r.time()
	return metav1.ObjectMeta{
		Namespace: w.namespace, Name: w.name, UID: r.uid(), ResourceVersion: Version(number),
		Generation: int64(1 + r.IntN(20)), CreationTimestamp: created,
		Labels:        map[string]string{"app.kubernetes.io/name": w.name, "track": Track(number)},
		ManagedFields: managed(template().pod.DeepCopy().ManagedFields, created, 60),
	}
}

// Deployment returns the deployment of the workload of a number.
func Deployment(number int) *appsv1.Deployment {
	w := workloadOf(number)
	d := template().deployment.DeepCopy()
	d.ObjectMeta = meta("deployment", number)
	d.Spec.Selector = w.selector()
	d.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: w.labels()}, Spec: w.spec("token"),
	}
	return d
}

// ConfigMap returns the config map of the workload of a number: a file and ten settings.
func ConfigMap(number int) *corev1.ConfigMap {
	r := randomOf("settings", number)
	data := map[string]string{"application.yaml": "server:\n  port: 8080\n# " + r.hex(1500) + "\n"}
	for i := range 10 {
		data[fmt.Sprintf("feature.%02d.enabled", i)] = fmt.Sprint(r.IntN(2) == 0)
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: meta("configmap", number), Data: data,
	}
}
