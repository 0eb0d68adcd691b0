package objects

import (
	"bytes"
	_ "embed"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed templates.yaml
var manifests []byte

// templates have the common parts of the objects of each kind.
type templates struct {
	pod        corev1.Pod
	deployment appsv1.Deployment
	widget     unstructured.Unstructured
}

var template = sync.OnceValue(func() *templates {
	t := new(templates)
	documents := bytes.Split(manifests, []byte("\n---\n"))
	for i, into := range []any{&t.pod, &t.deployment, &t.widget.Object} {
		if err := yaml.Unmarshal(documents[i], into); err != nil {
			panic(fmt.Sprintf("objects: document %d of templates.yaml: %v", i+1, err))
		}
	}
	return t
})

// workload has the common parts of the pods of one deployment.
type workload struct {
	random
	number    int
	name      string
	namespace string
	hash      string                // of the pod template
	set       metav1.OwnerReference // the replica set
	image     string                // with its tag
}

func workloadOf(number int) workload {
	r := randomOf("workload", number)
	name := fmt.Sprintf("%s-%d", r.word(), number)
	hash := r.suffix(10)
	return workload{
		random: r, number: number, name: name, namespace: Namespace(number), hash: hash,
		set: metav1.OwnerReference{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + hash, UID: r.uid(),
			Controller: new(true), BlockOwnerDeletion: new(true),
		},
		image: fmt.Sprintf("registry.example.com/%s/%s:v1.27.%d", Namespace(number), name,
			number%10),
	}
}

// Track is the label of one workload in a hundred.
func Track(workload int) string { return fmt.Sprintf("track-%02d", workload%100) }

func (w workload) labels() map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       w.name,
		"app.kubernetes.io/part-of":    w.namespace,
		"app.kubernetes.io/managed-by": "Helm",
		"track":                        Track(w.number),
		"pod-template-hash":            w.hash,
	}
}

func (w workload) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": w.name}}
}

// spec returns the pod template's spec. token is the name of the token volume.
func (w workload) spec(token string) corev1.PodSpec {
	spec := *template().pod.Spec.DeepCopy()
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = w.name, w.name
	spec.TopologySpreadConstraints[0].LabelSelector = w.selector()
	spec.Volumes[0].ConfigMap.Name, spec.Volumes[1].Name = w.name, token
	spec.Containers[0].Image = w.image
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.Args[len(c.Args)-1] += w.name
		c.Env[0].Value = "postgres://" + w.name + "." + w.namespace + ".svc:5432/main"
		c.Env[1].ValueFrom.SecretKeyRef.Name = w.name
		c.VolumeMounts[0].Name = token
	}
	return spec
}

// managed returns the managed fields of a template, written at a time and some seconds later.
func managed(entries []metav1.ManagedFieldsEntry, at metav1.Time,
	seconds int) []metav1.ManagedFieldsEntry {
	entries[0].Time, entries[1].Time = &at, new(after(at, seconds))
	return entries
}
