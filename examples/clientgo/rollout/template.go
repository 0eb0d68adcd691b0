package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hashLabel tells the replica sets of a deployment, and their pods, apart.
const hashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// hashOf returns what names a template: 40 bits of the SHA-256 of its JSON, so that two
// templates of one deployment do not meet.
func hashOf(template *corev1.PodTemplateSpec) (string, error) {
	data, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("spec.template cannot be encoded: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:5]), nil
}

// setFor returns the replica set of the present template of a deployment.
func setFor(d *appsv1.Deployment, hash string) *appsv1.ReplicaSet {
	template := d.Spec.Template.DeepCopy()
	template.Labels = withHash(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withHash(selector.MatchLabels, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, deploymentKind)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(wanted(d.Spec.Replicas)), MinReadySeconds: d.Spec.MinReadySeconds,
			Selector: selector, Template: *template,
		},
	}
}

// podFor returns a pod of a replica set.
func podFor(set *appsv1.ReplicaSet, name string) *corev1.Pod {
	template := set.Spec.Template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: name,
			Labels: template.Labels, Annotations: template.Annotations, Finalizers: template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)},
		},
		Spec: template.Spec,
	}
}

// withHash returns a copy of labels with that of the hash.
func withHash(given map[string]string, hash string) map[string]string {
	with := map[string]string{}
	maps.Copy(with, given)
	with[hashLabel] = hash
	return with
}

// wanted returns how many replicas a spec asks for; the default of the API is 1.
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
