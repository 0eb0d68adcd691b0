package fleet

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"
)

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	causeAnnotation    = "kubernetes.io/change-cause"
	hashLabel          = "pod-template-hash"
	nameLabel          = "app.kubernetes.io/name"
	partOfLabel        = "app.kubernetes.io/part-of"
)

//go:embed manifests.yaml
var manifests []byte

// templates are the objects of manifests.yaml, of which the objects of a fleet are copies.
type templates struct {
	namespace  *corev1.Namespace
	node       *corev1.Node
	config     *corev1.ConfigMap
	service    *corev1.Service
	deployment *appsv1.Deployment
}

func readTemplates() (t templates, err error) {
	documents := bytes.Split(manifests, []byte("\n---\n"))
	for i, into := range []any{&t.namespace, &t.node, &t.config, &t.service, &t.deployment} {
		if err := yaml.UnmarshalStrict(documents[i], into); err != nil {
			return t, fmt.Errorf("fleet: document %d of the manifests: %w", i+1, err)
		}
	}
	return t, nil
}

var (
	namespaceNames = strings.Fields("shop payments search media billing identity analytics support")
	appNames       = strings.Fields("cart-api catalog-web checkout-worker invoice-cache " +
		"login-gateway mail-worker orders-api pricing-sync reviews-api session-cache stock-sync")
)

// numbered returns the i-th of names, with a number after the end of names.
func numbered(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s-%d", names[i%len(names)], i/len(names)+1)
}

// randomName returns random characters like those in names that the API server generates.
func randomName(rng *mathrand.Rand, length int) string {
	name := make([]byte, length)
	for i := range name {
		name[i] = byte(rng.IntN(108)) // four times the 27 characters
	}
	return rand.SafeEncodeString(string(name))
}

func image(namespace, name string, revision int) string {
	return fmt.Sprintf("registry.example/%s/%s:1.4.%d", namespace, name, revision-1)
}

func (f *Fleet) newNamespace(i int) *corev1.Namespace {
	namespace := f.templates.namespace.DeepCopy()
	namespace.Name = numbered(namespaceNames, i)
	namespace.Labels = map[string]string{
		corev1.LabelMetadataName: namespace.Name, "team": "team-" + namespace.Name,
	}
	return namespace
}

func (f *Fleet) newNode(i int, now time.Time) *corev1.Node {
	node := f.templates.node.DeepCopy()
	node.Name = fmt.Sprintf("node-%02d", i+1)
	zone := "zone-" + string("abc"[i%3])
	node.Labels[corev1.LabelHostname], node.Labels[corev1.LabelTopologyZone] = node.Name, zone
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", i/250, 2+i%250)},
		{Type: corev1.NodeHostName, Address: node.Name},
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		c.LastTransitionTime, c.LastHeartbeatTime = metav1.NewTime(now), metav1.NewTime(now)
	}
	return node
}

// setMeta sets the names and the labels of an object of a deployment.
func setMeta(of *metav1.ObjectMeta, namespace, name string) {
	of.Namespace, of.Name = namespace, name
	of.Labels = map[string]string{nameLabel: name, partOfLabel: namespace}
}

func (f *Fleet) newDeployment(
	namespace, name string, replicas int32, now time.Time,
) *appsv1.Deployment {
	d := f.templates.deployment.DeepCopy()
	setMeta(&d.ObjectMeta, namespace, name)
	d.ManagedFields[0].Time = new(metav1.NewTime(now).Rfc3339Copy())
	d.Spec.Template.Labels = d.Labels
	d.Spec.Replicas = new(replicas)
	d.Spec.Selector.MatchLabels = map[string]string{nameLabel: name}
	spec := &d.Spec.Template.Spec
	spec.ServiceAccountName = name
	spec.Volumes[0].ConfigMap.Name = name
	spec.Containers[0].Name, spec.Containers[0].Image = name, image(namespace, name, 1)
	spec.Containers[0].EnvFrom[0].ConfigMapRef.Name = name
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas,
		ReadyReplicas: replicas, AvailableReplicas: replicas,
	}
	d.Status.Conditions = conditions(d, d.Status, now)
	sign(d)
	return d
}

func (f *Fleet) newConfig(d *appsv1.Deployment) *corev1.ConfigMap {
	config := f.templates.config.DeepCopy()
	setMeta(&config.ObjectMeta, d.Namespace, d.Name)
	return config
}

func (f *Fleet) newService(d *appsv1.Deployment) *corev1.Service {
	service := f.templates.service.DeepCopy()
	setMeta(&service.ObjectMeta, d.Namespace, d.Name)
	service.Spec.Selector = d.Spec.Selector.MatchLabels
	service.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", f.rng.IntN(256), 1+f.rng.IntN(254))
	return service
}

// hashOf returns ten characters of a hash of a value.
func hashOf(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // the types of the API can be encoded
	}
	hash := fnv.New64a()
	hash.Write(data) //nolint:errcheck // a hash returns no error
	return rand.SafeEncodeString(fmt.Sprintf("%010d", hash.Sum64()%1e10))
}

// setName returns the name of the replica set of a deployment's template. If the answer to a create
// is lost, its repetition finds the name taken.
func setName(d *appsv1.Deployment) string { return d.Name + "-" + hashOf(d.Spec.Template) }

// newReplicaSet returns the replica set of a deployment's template, without pods.
func newReplicaSet(d *appsv1.Deployment, revision int) *appsv1.ReplicaSet {
	template := d.Spec.Template.DeepCopy()
	hash := labels.Set{hashLabel: hashOf(d.Spec.Template)}
	template.Labels = labels.Merge(template.Labels, hash)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: setName(d), Labels: template.Labels,
			OwnerReferences: ownedBy(d, "Deployment"),
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{
				MatchLabels: labels.Merge(d.Spec.Selector.MatchLabels, hash),
			},
			Template: *template,
		},
	}
	annotate(set, d, revision)
	return set
}

// annotate sets the annotations of a replica set that kubectl shows as the history.
func annotate(set *appsv1.ReplicaSet, d *appsv1.Deployment, revision int) {
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, revisionAnnotation, strconv.Itoa(revision))
	delete(set.Annotations, causeAnnotation)
	if cause, ok := d.Annotations[causeAnnotation]; ok {
		set.Annotations[causeAnnotation] = cause
	}
}

func ownedBy(owner metav1.Object, kind string) []metav1.OwnerReference {
	ref := metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))
	return []metav1.OwnerReference{*ref}
}

// revision returns the revision of a deployment or of its replica set, 0 if it is not known.
func revision(obj metav1.Object) int {
	n, _ := strconv.Atoi(obj.GetAnnotations()[revisionAnnotation])
	return n
}

// newPod returns a pod of a replica set that is not on a node yet.
func newPod(set *appsv1.ReplicaSet) *corev1.Pod {
	template := set.Spec.Template.DeepCopy()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, GenerateName: set.Name + "-", Labels: template.Labels,
			Annotations: template.Annotations, OwnerReferences: ownedBy(set, "ReplicaSet"),
		},
		Spec:   template.Spec,
		Status: corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable},
	}
}
