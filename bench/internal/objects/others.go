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
		Labels: map[string]string{"app.kubernetes.io/name": w.name, "track": Track(number)},
		ManagedFields: []metav1.ManagedFieldsEntry{managed("helm", "", created, podSpecFields),
			managed("kube-controller-manager", "status", after(created, 60), podStatusFields)},
	}
}

// Deployment returns the deployment of the workload of a number.
func Deployment(number int) *appsv1.Deployment {
	w := workloadOf(number)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: meta("deployment", number),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(Replicas)), RevisionHistoryLimit: new(int32(10)),
			ProgressDeadlineSeconds: new(int32(600)), Selector: w.selector(),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.labels()},
				Spec: w.spec("token")},
		},
		Status: appsv1.DeploymentStatus{
			Replicas: Replicas, ReadyReplicas: Replicas, AvailableReplicas: Replicas,
			UpdatedReplicas: Replicas,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable,
				Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
				Message: "Deployment has minimum availability."}},
		},
	}
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
