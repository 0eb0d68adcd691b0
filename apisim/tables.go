package apisim

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	none    = "<none>"
	unknown = "<unknown>"
)

// orNone returns a value, or what stands for an empty one.
func orNone(value string) string {
	if value == "" {
		return none
	}
	return value
}

func podTable() table {
	return table{
		headers: []metav1.TableColumnDefinition{
			nameHeader,
			header("Ready", "string", "Containers that are ready, of those that the pod has."),
			header("Status", "string", "What the pod is doing, or why it does not."),
			header("Restarts", "string", "How often its containers were started again, and when they last were."),
			ageHeader,
			wide("IP", "string", "The address of the pod."),
			wide("Node", "string", "The node that the pod was given."),
			wide("Nominated Node", "string", "The node that will have room for the pod when others have left it."),
			wide("Readiness Gates", "string", "Conditions that others set, true ones of all."),
		},
		cells: func(obj object) []any {
			pod := obj.(*corev1.Pod)
			ready, restarts := countContainers(pod)
			return []any{
				pod.Name, ready, podStatus(pod), restarts, age(pod.CreationTimestamp), orNone(pod.Status.PodIP),
				orNone(pod.Spec.NodeName), orNone(pod.Status.NominatedNodeName), readinessGates(pod),
			}
		},
	}
}

// countContainers says how many containers are ready, counting sidecars, and how
// often they were restarted.
func countContainers(pod *corev1.Pod) (ready, restarts string) {
	sidecars := sidecarsOf(pod)
	total, up, starts := len(pod.Spec.Containers)+sidecars.Len(), 0, int32(0)
	var last metav1.Time
	count := func(status corev1.ContainerStatus) {
		starts += status.RestartCount
		if t := status.LastTerminationState.Terminated; t != nil && last.Before(&t.FinishedAt) {
			last = t.FinishedAt
		}
		if status.Ready {
			up++
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		count(status)
	}
	for _, status := range pod.Status.InitContainerStatuses {
		if sidecars.Has(status.Name) {
			count(status)
		}
	}
	restarts = fmt.Sprint(starts)
	if starts > 0 && !last.IsZero() {
		restarts += fmt.Sprintf(" (%s ago)", age(last))
	}
	return fmt.Sprintf("%d/%d", up, total), restarts
}

// sidecarsOf returns the names of the init containers that go on running.
func sidecarsOf(pod *corev1.Pod) sets.Set[string] {
	names := sets.New[string]()
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			names.Insert(c.Name)
		}
	}
	return names
}

// podStatus says in a word what a pod does: its deletion goes before what its init
// containers wait for, that before its containers, and all before its phase.
func podStatus(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		if pod.Status.Reason == "NodeLost" {
			return "Unknown"
		}
		if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			return "Terminating"
		}
	}
	if reason := initStatus(pod); reason != "" {
		return reason
	}
	status := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		status = pod.Status.Reason
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonSchedulingGated {
			status = corev1.PodReasonSchedulingGated
		}
	}
	running := false
	for _, container := range slices.Backward(pod.Status.ContainerStatuses) {
		if reason := stateReason(container.State); reason != "" {
			status = reason
		}
		running = running || container.Ready && container.State.Running != nil
	}
	if status != "Completed" || !running {
		return status
	}
	if isReady(pod.Status.Conditions) {
		return "Running"
	}
	return "NotReady"
}

func isReady(conditions []corev1.PodCondition) bool {
	return slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// initStatus says what the init containers do, "" when they are done.
func initStatus(pod *corev1.Pod) string {
	sidecars := sidecarsOf(pod)
	for i, container := range pod.Status.InitContainerStatuses {
		state := container.State
		switch {
		case state.Terminated != nil && state.Terminated.ExitCode == 0:
		case sidecars.Has(container.Name) && container.Started != nil && *container.Started:
		case state.Terminated != nil, state.Waiting != nil && state.Waiting.Reason != "" && state.Waiting.Reason != "PodInitializing":
			return "Init:" + stateReason(state)
		default:
			return fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
	}
	return ""
}

// stateReason says why a container does not run, "" if it does.
func stateReason(state corev1.ContainerState) string {
	switch {
	case state.Waiting != nil:
		return state.Waiting.Reason
	case state.Terminated == nil:
		return ""
	case state.Terminated.Reason != "":
		return state.Terminated.Reason
	case state.Terminated.Signal != 0:
		return fmt.Sprintf("Signal:%d", state.Terminated.Signal)
	default:
		return fmt.Sprintf("ExitCode:%d", state.Terminated.ExitCode)
	}
}

func readinessGates(pod *corev1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return none
	}
	met := 0
	for _, gate := range pod.Spec.ReadinessGates {
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}) {
			met++
		}
	}
	return fmt.Sprintf("%d/%d", met, len(pod.Spec.ReadinessGates))
}

func deploymentTable() table {
	return table{
		headers: []metav1.TableColumnDefinition{
			nameHeader,
			header("Ready", "string", "Pods that are ready, of those that are wanted."),
			header("Up-to-date", "string", "Pods of the newest template."),
			header("Available", "string", "Pods that have been ready for long enough."),
			ageHeader,
			wide("Containers", "string", "Names of the containers in the template."),
			wide("Images", "string", "Images of the containers in the template."),
			wide("Selector", "string", "Selector of the pods."),
		},
		cells: func(obj object) []any {
			d := obj.(*appsv1.Deployment)
			var names, images []string
			for _, c := range d.Spec.Template.Spec.Containers {
				names, images = append(names, c.Name), append(images, c.Image)
			}
			return []any{
				d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, replicas(d.Spec.Replicas)), int64(d.Status.UpdatedReplicas),
				int64(d.Status.AvailableReplicas), age(d.CreationTimestamp), strings.Join(names, ","), strings.Join(images, ","), metav1.FormatLabelSelector(d.Spec.Selector),
			}
		},
	}
}

func nodeTable() table {
	return table{
		headers: []metav1.TableColumnDefinition{
			nameHeader,
			header("Status", "string", "Whether the node is ready, and takes pods."),
			header("Roles", "string", "Roles that its labels name."),
			ageHeader,
			header("Version", "string", "The version of the kubelet."),
			wide("Internal-IP", "string", "The address within the cluster."),
			wide("External-IP", "string", "The address for others."),
			wide("OS-Image", "string", "The operating system."),
			wide("Kernel-Version", "string", "The version of the kernel."),
			wide("Container-Runtime", "string", "What runs the containers."),
		},
		cells: func(obj object) []any {
			n := obj.(*corev1.Node)
			info := n.Status.NodeInfo
			return []any{
				n.Name, nodeStatus(n), nodeRoles(n), age(n.CreationTimestamp), info.KubeletVersion,
				nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP),
				orUnknown(info.OSImage), orUnknown(info.KernelVersion), orUnknown(info.ContainerRuntimeVersion),
			}
		},
	}
}

func orUnknown(value string) string {
	if value == "" {
		return unknown
	}
	return value
}

func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if status = "NotReady"; c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(n *corev1.Node) string {
	roles := sets.New[string]()
	for key, value := range n.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok && role != "" {
			roles.Insert(role)
		} else if key == "kubernetes.io/role" && value != "" {
			roles.Insert(value)
		}
	}
	return orNone(strings.Join(sets.List(roles), ","))
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return none
}
