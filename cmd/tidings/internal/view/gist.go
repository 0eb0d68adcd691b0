package view

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// gist says in a few words what one wants to know of an object of a kind, "" where
// there is nothing to say.
func gist(kind schema.GroupKind, obj map[string]any) string {
	switch kind.String() {
	case "Pod":
		return podGist(obj)
	case "Node":
		return nodeGist(obj)
	case "Service":
		return serviceGist(obj)
	case "ConfigMap":
		return keysGist(obj)
	case "Secret":
		return strings.TrimPrefix(text(obj, "type")+", "+keysGist(obj), ", ")
	case "Event", "Event.events.k8s.io":
		return eventGist(obj)
	case "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps":
		return fmt.Sprintf("%d/%d ready", number(obj, "status", "readyReplicas"), number(obj, "spec", "replicas"))
	case "DaemonSet.apps":
		return fmt.Sprintf("%d/%d ready", number(obj, "status", "numberReady"), number(obj, "status", "desiredNumberScheduled"))
	case "Job.batch":
		return fmt.Sprintf("%d/%d succeeded", number(obj, "status", "succeeded"), number(obj, "spec", "completions"))
	case "CronJob.batch":
		return text(obj, "spec", "schedule")
	case "Lease.coordination.k8s.io":
		return text(obj, "spec", "holderIdentity")
	default:
		return customGist(obj)
	}
}

func podGist(obj map[string]any) string {
	state := text(obj, "status", "phase")
	var ready, restarts int64
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
	parts := strings.TrimSpace(state)
	if len(statuses) > 0 {
		parts += fmt.Sprintf(" %d/%d", ready, len(statuses))
	}
	if node := text(obj, "spec", "nodeName"); node != "" {
		parts += " on " + node
	}
	if restarts > 0 {
		parts += ", " + Counted(restarts, "restart", "restarts")
	}
	return parts
}

func nodeGist(obj map[string]any) string {
	state := "NotReady"
	if condition(obj, "Ready") == "True" {
		state = "Ready"
	}
	if closed, _, _ := unstructured.NestedBool(obj, "spec", "unschedulable"); closed {
		state += ", cordoned"
	}
	return state
}

func serviceGist(obj map[string]any) string {
	parts := []string{text(obj, "spec", "type"), text(obj, "spec", "clusterIP")}
	for _, port := range list(obj, "spec", "ports") {
		parts = append(parts, fmt.Sprintf("%d/%s", number(port, "port"), text(port, "protocol")))
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

func keysGist(obj map[string]any) string {
	data, _, _ := unstructured.NestedFieldNoCopy(obj, "data")
	binary, _, _ := unstructured.NestedFieldNoCopy(obj, "binaryData")
	keys, _ := data.(map[string]any)
	binaryKeys, _ := binary.(map[string]any)
	return Counted(int64(len(keys)+len(binaryKeys)), "key", "keys")
}

func eventGist(obj map[string]any) string {
	message := text(obj, "message") + text(obj, "note")
	return strings.TrimSpace(text(obj, "type") + " " + text(obj, "reason") + ": " + message)
}

// customGist looks for what custom types usually have.
func customGist(obj map[string]any) string {
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

// condition returns the status of a condition, "" if there is none of that type.
func condition(obj map[string]any, kind string) string {
	for _, c := range list(obj, "status", "conditions") {
		if text(c, "type") == kind {
			return text(c, "status")
		}
	}
	return ""
}

// age returns how old an object is at a time, ok only if that is known.
func age(obj map[string]any, at time.Time) (time.Duration, bool) {
	created, err := time.Parse(time.RFC3339, text(obj, "metadata", "creationTimestamp"))
	if err != nil {
		return 0, false
	}
	return at.Sub(created), true
}

func text(obj map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	s, _ := value.(string)
	return s
}

func number(obj map[string]any, path ...string) int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
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
