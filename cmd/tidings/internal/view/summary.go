package view

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/see/format"
)

// summary describes the state of an object of a kind in a few words, "" for an unknown state.
func summary(kind schema.GroupKind, obj map[string]any) string {
	switch kind.String() {
	case "Pod":
		return podSummary(obj)
	case "Node":
		return nodeSummary(obj)
	case "Service":
		return serviceSummary(obj)
	case "ConfigMap":
		return keysSummary(obj)
	case "Secret":
		return strings.TrimPrefix(text(obj, "type")+", "+keysSummary(obj), ", ")
	case "Event", "Event.events.k8s.io":
		return strings.TrimSpace(fmt.Sprintf("%s %s: %s%s",
			text(obj, "type"), text(obj, "reason"), text(obj, "message"), text(obj, "note")))
	case "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps":
		return fraction(obj, "readyReplicas", "spec.replicas") + " ready"
	case "DaemonSet.apps":
		return fraction(obj, "numberReady", "status.desiredNumberScheduled") + " ready"
	case "Job.batch":
		return fraction(obj, "succeeded", "spec.completions") + " succeeded"
	case "CronJob.batch":
		return text(obj, "spec", "schedule")
	case "Lease.coordination.k8s.io":
		return text(obj, "spec", "holderIdentity")
	default:
		return customSummary(obj)
	}
}

// fraction returns a number of the status and the wanted number.
func fraction(obj map[string]any, status, wanted string) string {
	return fmt.Sprintf("%d/%d", number(obj, "status", status),
		number(obj, strings.Split(wanted, ".")...))
}

func podSummary(obj map[string]any) string {
	state := text(obj, "status", "phase")
	ready, restarts := 0, int64(0)
	statuses := list(obj, "status", "containerStatuses")
	for _, status := range statuses {
		if isReady, _, _ := unstructured.NestedBool(status, "ready"); isReady {
			ready++
		}
		restarts += number(status, "restartCount")
		if waiting := text(status, "state", "waiting", "reason"); waiting != "" {
			state = waiting
		}
	}
	if text(obj, "metadata", "deletionTimestamp") != "" {
		state = "Terminating"
	}
	if len(statuses) > 0 {
		state += fmt.Sprintf(" %d/%d", ready, len(statuses))
	}
	if node := text(obj, "spec", "nodeName"); node != "" {
		state += " on " + node
	}
	if restarts > 0 {
		state += ", " + format.Counted(restarts, "restart", "restarts")
	}
	return strings.TrimSpace(state)
}

func nodeSummary(obj map[string]any) string {
	state := "NotReady"
	if condition(obj, "Ready") == "True" {
		state = "Ready"
	}
	if cordoned, _, _ := unstructured.NestedBool(obj, "spec", "unschedulable"); cordoned {
		state += ", cordoned"
	}
	return state
}

func serviceSummary(obj map[string]any) string {
	parts := []string{text(obj, "spec", "type"), text(obj, "spec", "clusterIP")}
	for _, port := range list(obj, "spec", "ports") {
		parts = append(parts, fmt.Sprintf("%d/%s", number(port, "port"), text(port, "protocol")))
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

func keysSummary(obj map[string]any) string {
	data, _ := obj["data"].(map[string]any)
	binary, _ := obj["binaryData"].(map[string]any)
	return format.Counted(len(data)+len(binary), "key", "keys")
}

// customSummary returns the phase or the condition that most custom types have.
func customSummary(obj map[string]any) string {
	if phase := text(obj, "status", "phase"); phase != "" {
		return phase
	}
	for _, name := range []string{"Ready", "Available"} {
		switch condition(obj, name) {
		case "True":
			return name
		case "False":
			return "not " + name
		}
	}
	return ""
}

// condition returns the status of a condition, "" for a missing condition.
func condition(obj map[string]any, kind string) string {
	for _, c := range list(obj, "status", "conditions") {
		if text(c, "type") == kind {
			return text(c, "status")
		}
	}
	return ""
}

func text(obj map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(obj, path...)
	return value
}

func number(obj map[string]any, path ...string) int64 {
	value, _, _ := unstructured.NestedNumberAsFloat64(obj, path...)
	return int64(value)
}

func list(obj map[string]any, path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	items, _ := value.([]any)
	var found []map[string]any
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			found = append(found, fields)
		}
	}
	return found
}
