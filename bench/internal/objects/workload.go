package objects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workload is what the pods of one deployment have in common.
type workload struct {
	random
	number    int
	name      string
	namespace string
	hash      string    // of the pod template
	set       types.UID // of the replica set
	uid       types.UID // of the deployment
	image     string
}

func workloadOf(number int) workload {
	r := randomOf("workload", number)
	name := fmt.Sprintf("%s-%d", r.word(), number)
	return workload{
		random: r, number: number, name: name, namespace: Namespace(number),
		hash: r.suffix(10), set: r.uid(), uid: r.uid(),
		image: "registry.example.com/" + Namespace(number) + "/" + name,
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

func fieldRef(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		APIVersion: "v1", FieldPath: path,
	}}
}

// spec returns the pod template's spec. token is the name of the token volume.
func (w workload) spec(token string) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
		SchedulerName:                 "default-scheduler",
		TerminationGracePeriodSeconds: new(int64(30)), EnableServiceLinks: new(true),
		PriorityClassName:  "service",
		ServiceAccountName: w.name, DeprecatedServiceAccount: w.name,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), FSGroup: new(int64(2000))},
		Containers: []corev1.Container{
			w.container("app", w.image+":v1.27."+fmt.Sprint(w.number%10), 8080, token),
			w.container("proxy", "registry.example.com/mesh/proxy:2.19.4", 15090, token),
		},
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: w.selector(),
		}},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: w.name}, DefaultMode: new(int32(420)),
			}}},
			{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: new(int32(420)),
				Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
						ExpirationSeconds: new(int64(3607)), Path: "token",
					}},
					{ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
						Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
					}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
						Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
							FieldPath: "metadata.namespace"},
					}}}},
				},
			}}},
		},
	}
}

func (w workload) container(name, image string, port int32, token string) corev1.Container {
	probe := func(path string, delay, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path,
				Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP}},
			InitialDelaySeconds: delay, TimeoutSeconds: 2, PeriodSeconds: period,
			SuccessThreshold: 1, FailureThreshold: 3,
		}
	}
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{"--listen=:" + fmt.Sprint(port), "--log-level=info", "--name=" + w.name,
			"--shards=16"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: fieldRef("metadata.name")},
			{Name: "POD_IP", ValueFrom: fieldRef("status.podIP")},
			{Name: "REGION", Value: "eu-west-1"},
			{Name: "DATABASE_URL", Value: "postgres://" + w.name + "." + w.namespace + ".svc:5432/main"},
			{Name: "API_KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: w.name}, Key: "api-key",
			}}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"),
				"memory": resource.MustParse("512Mi")},
			Limits: corev1.ResourceList{"cpu": resource.MustParse("1"),
				"memory": resource.MustParse("1Gi")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/" + name, ReadOnly: true},
			{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		LivenessProbe: probe("/healthz", 15, 20), ReadinessProbe: probe("/ready", 5, 10),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		TerminationMessagePath:   "/dev/termination-log",
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}
