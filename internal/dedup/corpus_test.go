package dedup

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A corpus is a cluster's worth of objects, the same for the same seed: pods of
// many workloads, as their controllers, the scheduler and the kubelet leave
// them. What a cluster repeats is repeated and what it makes unique is unique.
type corpus struct {
	random   *rand.Rand
	replicas int
	begin    time.Time
	version  int
}

func newCorpus(seed uint64, replicas int) *corpus {
	return &corpus{
		random:   rand.New(rand.NewPCG(seed, seed)),
		replicas: replicas,
		begin:    time.Unix(1_760_000_000, 0),
		version:  48_000_000,
	}
}

// text returns n random characters as names have them.
func (c *corpus) text(n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[c.random.IntN(len(letters))]
	}
	return string(b)
}

func (c *corpus) hex(n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[c.random.IntN(len(digits))]
	}
	return string(b)
}

func (c *corpus) uid() types.UID {
	return types.UID(fmt.Sprintf("%s-%s-4%s-a%s-%s", c.hex(8), c.hex(4), c.hex(3), c.hex(3), c.hex(12)))
}

func (c *corpus) ip() string {
	return fmt.Sprintf("10.%d.%d.%d", c.random.IntN(250), c.random.IntN(250), c.random.IntN(250))
}

func (c *corpus) nextVersion() string {
	c.version += 1 + c.random.IntN(40)
	return fmt.Sprint(c.version)
}

// moment returns a time in the second that it says: up to a week after the beginning.
func (c *corpus) moment() metav1.Time {
	return metav1.NewTime(c.begin.Add(time.Duration(c.random.IntN(7*24*3600)) * time.Second))
}

// A workload is what the pods of one Deployment have in common.
type workload struct {
	name, namespace string
	hash            string
	owner           types.UID
	labels          map[string]string
	annotations     map[string]string
	template        corev1.PodSpec
	imageIDs        []string
}

func (c *corpus) workload(i int) *workload {
	name := fmt.Sprintf("%s-service-%03d", []string{"checkout", "catalog", "billing", "search", "gateway"}[i%5], i)
	w := &workload{
		name:      name,
		namespace: fmt.Sprintf("team-%02d", i%30),
		hash:      c.text(10),
		owner:     c.uid(),
	}
	w.labels = map[string]string{
		"app.kubernetes.io/name":       name,
		"app.kubernetes.io/instance":   name + "-production",
		"app.kubernetes.io/managed-by": "Helm",
		"app.kubernetes.io/version":    fmt.Sprintf("v1.%d.%d", i%17, i%5),
		"pod-template-hash":            w.hash,
	}
	w.annotations = map[string]string{
		"checksum/config":      c.hex(64),
		"prometheus.io/scrape": "true",
		"prometheus.io/port":   "9090",
	}
	w.template = c.podTemplate(i, name)
	for range w.template.Containers {
		w.imageIDs = append(w.imageIDs, "registry.example.com/platform/"+name+"@sha256:"+c.hex(64))
	}
	return w
}

func (c *corpus) podTemplate(i int, name string) corev1.PodSpec {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP,
			}},
			InitialDelaySeconds: 5, TimeoutSeconds: 1 + int32(i%3), PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
		}
	}
	var env []corev1.EnvVar
	for j := range 7 {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%c_URL", 'A'+j), Value: fmt.Sprintf("http://backend-%d.%s.svc:8080", j, name)})
	}
	env = append(env,
		corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "password"}}})
	resources := func(cpu, memory string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"memory": resource.MustParse(memory)},
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)},
		}
	}
	context := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)), DNSPolicy: corev1.DNSClusterFirst,
		ServiceAccountName: name, DeprecatedServiceAccount: name, SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(2000))},
		SchedulerName: corev1.DefaultSchedulerName,
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name + "-config"}, DefaultMode: new(int32(420)),
		}}}},
		Containers: []corev1.Container{{
			Name: "app", Image: "registry.example.com/platform/" + name + ":v1." + fmt.Sprint(i%17),
			Args:      []string{"--listen=:8080", "--log-format=json", "--config=/etc/config/config.yaml"},
			Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}},
			Env:       env,
			Resources: resources("250m", "512Mi"), VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/config", ReadOnly: true}},
			LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"), SecurityContext: context,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
		}, {
			Name: "proxy", Image: "registry.example.com/mesh/proxy:1.29.0",
			Args:      []string{"proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local", "--concurrency=2"},
			Ports:     []corev1.ContainerPort{{Name: "proxy", ContainerPort: 15090, Protocol: corev1.ProtocolTCP}},
			Env:       []corev1.EnvVar{{Name: "ISTIO_META_WORKLOAD", Value: name}, {Name: "TRUST_DOMAIN", Value: "cluster.local"}, {Name: "INSTANCE_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}}},
			Resources: resources("100m", "128Mi"), ReadinessProbe: probe("/healthz/ready"), SecurityContext: context,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
		}},
	}
}

// pod returns the n-th pod of a workload: what admission, the scheduler and the
// kubelet make of its template.
func (c *corpus) pod(w *workload) *corev1.Pod {
	created := c.moment()
	ip, hostIP := c.ip(), fmt.Sprintf("192.168.%d.%d", c.random.IntN(4), c.random.IntN(250))
	name := w.name + "-" + w.hash + "-" + c.text(5)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: w.name + "-" + w.hash + "-", Namespace: w.namespace, UID: c.uid(), ResourceVersion: c.nextVersion(),
			Generation:        1,
			CreationTimestamp: created, Labels: w.labels, Annotations: w.annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: w.name + "-" + w.hash, UID: w.owner, Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: *w.template.DeepCopy(),
	}
	token := "kube-api-access-" + c.text(5)
	pod.Spec.Volumes = append(pod.Spec.Volumes, tokenVolume(token))
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
		})
	}
	pod.Spec.NodeName = "node-" + strings.ReplaceAll(hostIP, ".", "-")
	pod.Spec.Priority = new(int32(0))
	pod.Spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	pod.Spec.EnableServiceLinks = new(true)
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
		})
	}
	started := metav1.NewTime(created.Add(time.Duration(3+c.random.IntN(20)) * time.Second))
	pod.Status = c.podStatus(w, pod, created, started, ip, hostIP)
	pod.ManagedFields = c.podManagers(pod, started, ip)
	return pod
}

func tokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(420)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}

func (c *corpus) podStatus(w *workload, pod *corev1.Pod, created, started metav1.Time, ip, hostIP string) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: hostIP, HostIPs: []corev1.HostIP{{IP: hostIP}}, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		StartTime: &created, QOSClass: corev1.PodQOSBurstable, ObservedGeneration: 1,
	}
	for i, condition := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		at := created
		if i == 0 || i == 2 || i == 3 {
			at = started
		}
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: condition, ObservedGeneration: 1, Status: corev1.ConditionTrue, LastTransitionTime: at,
		})
	}
	for i, container := range pod.Spec.Containers {
		s := corev1.ContainerStatus{
			Name: container.Name, Ready: true, Image: container.Image, ImageID: w.imageIDs[i], ContainerID: "containerd://" + c.hex(64),
			Started: new(true), Resources: container.Resources.DeepCopy(),
			State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			AllocatedResources: container.Resources.Requests.DeepCopy(),
		}
		for _, mount := range container.VolumeMounts {
			s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMountStatus{
				Name: mount.Name, MountPath: mount.MountPath, ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyDisabled),
			})
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	return status
}

// podManagers returns the managed fields of the two managers of a pod, with what
// each pod has of its own in them: the key of the entry of its address.
func (c *corpus) podManagers(pod *corev1.Pod, started metav1.Time, ip string) []metav1.ManagedFieldsEntry {
	var spec strings.Builder
	for _, container := range pod.Spec.Containers {
		fmt.Fprintf(&spec, `"k:{\"name\":\"%s\"}":{".":{},"f:args":{},"f:env":{".":{}`, container.Name)
		for _, env := range container.Env[:min(3, len(container.Env))] {
			fmt.Fprintf(&spec, `,"k:{\"name\":\"%s\"}":{".":{},"f:name":{},"f:value":{}}`, env.Name)
		}
		spec.WriteString(`},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{},"f:resources":{},"f:securityContext":{}},`)
	}
	workload := `{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/name":{},` +
		`"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"` + string(pod.OwnerReferences[0].UID) + `\"}":{}}},"f:spec":{"f:containers":{` +
		strings.TrimSuffix(spec.String(), ",") + `},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{}}}`
	kubelet := `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},` +
		`"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},` +
		`"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},` +
		`"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"` + ip + `\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`
	return []metav1.ManagedFieldsEntry{
		{
			Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			Time: &pod.CreationTimestamp, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(workload),
		},
		{
			Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			Time: &started, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(kubelet), Subresource: "status",
		},
	}
}

func (c *corpus) deployment(w *workload) *appsv1.Deployment {
	at := c.moment()
	fields := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"` + w.name + `\"}":{}}}}}}`
	condition := func(t appsv1.DeploymentConditionType, reason, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: at, LastTransitionTime: at}
	}
	replicas := int32(c.replicas)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.name, Namespace: w.namespace, UID: c.uid(), ResourceVersion: c.nextVersion(), Generation: 3, CreationTimestamp: at,
			Labels: w.labels, Annotations: w.annotations,
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": w.name}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: w.labels, Annotations: w.annotations}, Spec: w.template},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: new(intstr.FromString("25%")), MaxSurge: new(intstr.FromString("25%")),
			}},
			RevisionHistoryLimit: new(int32(10)), ProgressDeadlineSeconds: new(int32(600)),
		},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 3, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			Conditions: []appsv1.DeploymentCondition{
				condition(appsv1.DeploymentAvailable, "MinimumReplicasAvailable", "Deployment has minimum availability."),
				condition(appsv1.DeploymentProgressing, "NewReplicaSetAvailable", `ReplicaSet "`+w.name+"-"+w.hash+`" has successfully progressed.`),
			},
		},
	}
}

// configMap returns a config map of a workload; one in three holds the
// certificate that every namespace has.
func (c *corpus) configMap(w *workload, i int) *corev1.ConfigMap {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.name + "-" + c.text(5), Namespace: w.namespace, UID: c.uid(), ResourceVersion: c.nextVersion(), CreationTimestamp: c.moment(), Labels: w.labels,
		},
	}
	if i%3 == 0 {
		m.Data = map[string]string{"ca.crt": strings.Repeat("MIIDBTCCAe2gAwIBAgIIXxYdXrp2Pj0wDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE\n", 16)}
		return m
	}
	m.Data = map[string]string{
		"config.yaml": "listen: :8080\nlog: json\ntoken: " + c.hex(40) + "\nbackends:\n" + strings.Repeat("- http://backend."+w.name+".svc:8080\n", 12),
	}
	return m
}

// scrambled returns a pod in which nothing is as in any other pod.
func (c *corpus) scrambled() *corev1.Pod {
	w := c.workload(c.random.IntN(1 << 20))
	w.name, w.namespace = c.text(20), c.text(8)
	w.labels = map[string]string{c.text(12): c.text(12), c.text(12): c.text(20), c.text(10): c.text(9)}
	w.annotations = map[string]string{c.text(16): c.hex(64), c.text(20): c.text(5)}
	scramble := func(s *string) { *s = c.text(max(5, len(*s))) }
	spec := &w.template
	scramble(&spec.ServiceAccountName)
	scramble(&spec.DeprecatedServiceAccount)
	scramble(&spec.SchedulerName)
	scramble(&spec.Volumes[0].ConfigMap.Name)
	for i := range spec.Containers {
		container := &spec.Containers[i]
		scramble(&container.Name)
		scramble(&container.Image)
		for j := range container.Args {
			scramble(&container.Args[j])
		}
		for j := range container.Ports {
			scramble(&container.Ports[j].Name)
			container.Ports[j].ContainerPort = c.random.Int32()
		}
		for j := range container.Env {
			scramble(&container.Env[j].Name)
			scramble(&container.Env[j].Value)
		}
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if probe != nil {
				scramble(&probe.HTTPGet.Path)
				probe.PeriodSeconds = c.random.Int32()
			}
		}
		container.SecurityContext = &corev1.SecurityContext{RunAsUser: new(c.random.Int64())}
		for name := range container.Resources.Requests {
			container.Resources.Requests[name] = *resource.NewQuantity(c.random.Int64N(1<<40), resource.DecimalSI)
		}
		for name := range container.Resources.Limits {
			container.Resources.Limits[name] = *resource.NewQuantity(c.random.Int64N(1<<40), resource.DecimalSI)
		}
		for j := range container.VolumeMounts {
			scramble(&container.VolumeMounts[j].MountPath)
		}
		w.imageIDs[i] = c.text(80)
	}
	pod := c.pod(w)
	pod.Spec.Tolerations = nil
	pod.Spec.SecurityContext = nil
	pod.Spec.NodeName = c.text(20)
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		condition.LastTransitionTime = c.moment()
		condition.Message = c.text(30)
	}
	return pod
}

// pods returns the encoded pods of n workloads, in the order in which a server lists them.
func (c *corpus) pods(workloads int) [][]byte {
	var all [][]byte
	for i := range workloads {
		w := c.workload(i)
		for range c.replicas {
			all = append(all, encode(c.pod(w)))
		}
	}
	return all
}

func encode(m interface{ Marshal() ([]byte, error) }) []byte {
	data, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	return data
}
