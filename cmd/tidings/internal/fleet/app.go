package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	hashLabel          = "pod-template-hash"
	hashLength         = 10
)

// app is one application: a deployment with what belongs to it. What somebody else has
// deleted is nil, but for the deployment.
type app struct {
	deployment *appsv1.Deployment
	set        *appsv1.ReplicaSet // of the current revision
	previous   *appsv1.ReplicaSet // of the one before; nil if there is none
	pods       []*member
	service    *corev1.Service
	config     *corev1.ConfigMap
	database   *unstructured.Unstructured // nil for most
	patch      int                        // of the image
	busy       bool                       // a story about it is under way
	kept       bool                       // somebody else decides its size and its image
}

// member is a pod's place in an application. Stories hold on to it while the pod
// changes.
type member struct{ pod *corev1.Pod }

func newApp(rng *rand.Rand, namespace, name string, replicas int32) *app {
	labels := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": namespace}
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	selector := map[string]string{"app.kubernetes.io/name": name}
	port := int32(8000 + rng.IntN(1000))
	deployment := &appsv1.Deployment{
		ObjectMeta: meta(),
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(replicas),
			Selector:             &metav1.LabelSelector{MatchLabels: selector},
			RevisionHistoryLimit: new(int32(2)),
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       podSpec(rng, namespace, name, port),
			},
		},
	}
	deployment.Annotations = map[string]string{revisionAnnotation: "1"}
	setDeploymentStatus(deployment, replicas, replicas, replicas)
	a := &app{deployment: deployment}
	a.set = newReplicaSet(rng, deployment, replicas)
	setReplicaSetStatus(a.set, replicas, replicas)
	a.service = &corev1.Service{
		ObjectMeta: meta(),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector,
			ClusterIP: fmt.Sprintf("10.96.%d.%d", rng.IntN(256), 1+rng.IntN(254)),
			Ports:     []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(port)}},
		},
	}
	a.config = &corev1.ConfigMap{
		ObjectMeta: meta(),
		Data: map[string]string{
			"log.level":         "info",
			"cache.ttl":         strconv.Itoa(30+10*rng.IntN(10)) + "s",
			"pool.size":         strconv.Itoa(4 + rng.IntN(28)),
			"feature.new-menus": strconv.FormatBool(rng.IntN(2) == 0),
		},
	}
	return a
}

func podSpec(rng *rand.Rand, namespace, name string, port int32) corev1.PodSpec {
	probe := func(path string, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP}},
			PeriodSeconds: period, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
		}
	}
	cpu := 50 * (1 + rng.IntN(10))
	memory := 64 * (1 + rng.IntN(8))
	fieldEnv := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	return corev1.PodSpec{
		ServiceAccountName:            name,
		RestartPolicy:                 corev1.RestartPolicyAlways,
		DNSPolicy:                     corev1.DNSClusterFirst,
		SchedulerName:                 corev1.DefaultSchedulerName,
		TerminationGracePeriodSeconds: new(int64(30)),
		SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532))},
		Containers: []corev1.Container{{
			Name:  name,
			Image: image(namespace, name, 0),
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			Env: []corev1.EnvVar{
				{Name: "SERVICE_NAME", Value: name},
				{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector.platform.svc:4317"},
				fieldEnv("POD_NAME", "metadata.name"), fieldEnv("POD_NAMESPACE", "metadata.namespace"), fieldEnv("NODE_NAME", "spec.nodeName"),
			},
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(cpu), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(memory)<<20, resource.BinarySI)},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(2*memory)<<20, resource.BinarySI)},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "config", MountPath: "/etc/" + name, ReadOnly: true},
				{Name: "scratch", MountPath: "/tmp"},
			},
			LivenessProbe:            probe("/healthz", 20),
			ReadinessProbe:           probe("/readyz", 5),
			ImagePullPolicy:          corev1.PullIfNotPresent,
			TerminationMessagePath:   corev1.TerminationMessagePathDefault,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			SecurityContext:          &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true)},
		}},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, DefaultMode: new(int32(0o644))}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		},
	}
}

func image(namespace, name string, patch int) string {
	return fmt.Sprintf("registry.example/%s/%s:1.4.%d", namespace, name, patch)
}

// newReplicaSet returns the replica set of a deployment's current template.
func newReplicaSet(rng *rand.Rand, d *appsv1.Deployment, replicas int32) *appsv1.ReplicaSet {
	hash := randomName(rng, hashLength)
	template := *d.Spec.Template.DeepCopy()
	template.Labels = withLabel(template.Labels, hashLabel, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash,
			Labels:          template.Labels,
			Annotations:     map[string]string{revisionAnnotation: d.Annotations[revisionAnnotation]},
			OwnerReferences: ownedBy("apps/v1", "Deployment", d),
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: withLabel(d.Spec.Selector.MatchLabels, hashLabel, hash)},
			Template: template,
		},
	}
}

func setDeploymentStatus(d *appsv1.Deployment, replicas, updated, ready int32) {
	d.Status.ObservedGeneration = max(1, d.Generation)
	d.Status.Replicas, d.Status.UpdatedReplicas = replicas, updated
	d.Status.ReadyReplicas, d.Status.AvailableReplicas = ready, ready
	d.Status.UnavailableReplicas = max(0, wanted(d)-ready)
}

func setReplicaSetStatus(set *appsv1.ReplicaSet, replicas, ready int32) {
	set.Status.ObservedGeneration = max(1, set.Generation)
	set.Status.Replicas, set.Status.FullyLabeledReplicas = replicas, replicas
	set.Status.ReadyReplicas, set.Status.AvailableReplicas = ready, ready
}

func ownedBy(version, kind string, owner metav1.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
}

// withLabel returns a copy of labels with one more.
func withLabel(labels map[string]string, key, value string) map[string]string {
	copied := make(map[string]string, len(labels)+1)
	maps.Copy(copied, labels)
	copied[key] = value
	return copied
}
