package apisim

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// selectableFields returns the fields that objects of a resource can be selected by,
// as Kubernetes' conversions of field labels list them; nil is those that every
// object has.
func (r *resource) selectableFields() []string {
	named := []string{"metadata.name", "metadata.namespace"}
	if !r.typed {
		if !r.Namespaced {
			named = named[:1]
		}
		return append(named, r.fields...)
	}
	switch r.Group + "/" + r.Name {
	case "/pods":
		return append(named, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
			"status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName")
	case "/nodes":
		return []string{"metadata.name", "spec.unschedulable"}
	case "/namespaces":
		return []string{"metadata.name", "status.phase"}
	case "/secrets":
		return append(named, "type")
	case "/services":
		return append(named, "spec.clusterIP", "spec.type")
	case "/replicationcontrollers", "apps/replicasets":
		return append(named, "status.replicas")
	case "batch/jobs":
		return append(named, "status.successful")
	case "certificates.k8s.io/certificatesigningrequests":
		return []string{"metadata.name", "spec.signerName"}
	case "resource.k8s.io/resourceslices":
		return []string{"metadata.name", "spec.nodeName", "spec.driver"}
	case "/events":
		return append(named, "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
			"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type")
	case "events.k8s.io/events":
		return append(named, "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion",
			"regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type")
	default:
		return nil
	}
}

// fieldSelector refuses a selector by fields that the resource does not know, and
// gives old names of fields their new ones.
func (r *resource) fieldSelector(given fields.Selector) (fields.Selector, error) {
	known := r.selectableFields()
	selector, err := given.Transform(func(field, value string) (string, string, error) {
		switch {
		case known == nil:
			return runtime.DefaultMetaV1FieldSelectorConversion(field, value)
		case slices.Contains(known, field):
			return field, value, nil
		case field == "spec.host" && slices.Contains(known, "spec.nodeName") && r.Name == "pods":
			return "spec.nodeName", value, nil
		default:
			return "", "", fmt.Errorf("field label not supported: %s", field)
		}
	})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return selector, nil
}

// objectFields are the fields of an object that it can be selected by.
type objectFields struct {
	object
	custom []string
}

// Has reports whether there is such a field.
func (f objectFields) Has(field string) bool { return f.Get(field) != "" }

// Get returns the value of a field, "" if it is not known.
func (f objectFields) Get(field string) string {
	switch field {
	case "metadata.name":
		return f.GetName()
	case "metadata.namespace":
		return f.GetNamespace()
	}
	switch obj := f.object.(type) {
	case *corev1.Pod:
		return podField(obj, field)
	case *corev1.Event:
		return eventField(obj, field)
	case *eventsv1.Event:
		return newEventField(obj, field)
	case *unstructured.Unstructured:
		if slices.Contains(f.custom, field) {
			return mapField(obj, field)
		}
		return ""
	default:
		return otherField(obj, field)
	}
}

func podField(pod *corev1.Pod, field string) string {
	switch field {
	case "spec.nodeName":
		return pod.Spec.NodeName
	case "spec.restartPolicy":
		return string(pod.Spec.RestartPolicy)
	case "spec.schedulerName":
		return pod.Spec.SchedulerName
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName
	case "spec.hostNetwork":
		return strconv.FormatBool(pod.Spec.HostNetwork)
	case "status.phase":
		return string(pod.Status.Phase)
	case "status.podIP":
		return pod.Status.PodIP
	case "status.nominatedNodeName":
		return pod.Status.NominatedNodeName
	default: // status.podIPs may be asked for, and is never there
		return ""
	}
}

func eventField(e *corev1.Event, field string) string {
	switch field {
	case "reason":
		return e.Reason
	case "type":
		return e.Type
	case "reportingComponent":
		return e.ReportingController
	case "source":
		if e.Source.Component == "" {
			return e.ReportingController
		}
		return e.Source.Component
	default:
		return referenceField(e.InvolvedObject, "involvedObject.", field)
	}
}

func newEventField(e *eventsv1.Event, field string) string {
	switch field {
	case "reason":
		return e.Reason
	case "type":
		return e.Type
	case "reportingController":
		return e.ReportingController
	default:
		return referenceField(e.Regarding, "regarding.", field)
	}
}

func referenceField(r corev1.ObjectReference, prefix, field string) string {
	switch field {
	case prefix + "kind":
		return r.Kind
	case prefix + "namespace":
		return r.Namespace
	case prefix + "name":
		return r.Name
	case prefix + "uid":
		return string(r.UID)
	case prefix + "apiVersion":
		return r.APIVersion
	case prefix + "resourceVersion":
		return r.ResourceVersion
	case prefix + "fieldPath":
		return r.FieldPath
	default:
		return ""
	}
}

// otherField returns a field of the types that have one or two.
func otherField(obj object, field string) string {
	switch obj := obj.(type) {
	case *corev1.Node:
		return when(field == "spec.unschedulable", strconv.FormatBool(obj.Spec.Unschedulable))
	case *corev1.Namespace:
		return when(field == "status.phase", string(obj.Status.Phase))
	case *corev1.Secret:
		return when(field == "type", string(obj.Type))
	case *corev1.Service:
		return when(field == "spec.type", string(obj.Spec.Type)) + when(field == "spec.clusterIP", obj.Spec.ClusterIP)
	case *corev1.ReplicationController:
		return when(field == "status.replicas", fmt.Sprint(obj.Status.Replicas))
	case *appsv1.ReplicaSet:
		return when(field == "status.replicas", fmt.Sprint(obj.Status.Replicas))
	case *batchv1.Job:
		return when(field == "status.successful", fmt.Sprint(obj.Status.Succeeded))
	case *certificatesv1.CertificateSigningRequest:
		return when(field == "spec.signerName", obj.Spec.SignerName)
	case *resourcev1.ResourceSlice:
		if field == "spec.nodeName" && obj.Spec.NodeName != nil {
			return *obj.Spec.NodeName
		}
		return when(field == "spec.driver", obj.Spec.Driver)
	default:
		return ""
	}
}

func when(asked bool, value string) string {
	if asked {
		return value
	}
	return ""
}

// mapField returns a field of a custom object as text.
func mapField(u *unstructured.Unstructured, path string) string {
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, fieldsOfPath(path)...)
	if err != nil || !found || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
