package apisim

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// columnsBetween returns the table of a resource whose first column is the name, whose
// last one is the age, and that has others between these and after them.
func columnsBetween(between, after []metav1.TableColumnDefinition, cells func(obj object) (between, after []any)) table {
	return table{
		headers: slices.Concat([]metav1.TableColumnDefinition{nameHeader}, between, []metav1.TableColumnDefinition{ageHeader}, after),
		cells: func(obj object) []any {
			left, right := cells(obj)
			return slices.Concat([]any{obj.GetName()}, left, []any{age(obj.GetCreationTimestamp())}, right)
		},
	}
}

func plainTable() table {
	return columnsBetween(nil, nil, func(object) (between, after []any) { return nil, nil })
}

func namespaceTable() table {
	return columnsBetween([]metav1.TableColumnDefinition{header("Status", "string", "Whether the namespace takes objects, or goes.")}, nil,
		func(obj object) (between, after []any) {
			return []any{string(obj.(*corev1.Namespace).Status.Phase)}, nil
		})
}

func configMapTable() table {
	return columnsBetween([]metav1.TableColumnDefinition{header("Data", "string", "How many keys it has.")}, nil,
		func(obj object) (between, after []any) {
			c := obj.(*corev1.ConfigMap)
			return []any{int64(len(c.Data) + len(c.BinaryData))}, nil
		})
}

func secretTable() table {
	return columnsBetween([]metav1.TableColumnDefinition{header("Type", "string", "What it is for."), header("Data", "string", "How many keys it has.")}, nil,
		func(obj object) (between, after []any) {
			s := obj.(*corev1.Secret)
			return []any{string(s.Type), int64(len(s.Data))}, nil
		})
}

// templateHeaders are the columns of what makes pods.
func templateHeaders() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		wide("Containers", "string", "Names of the containers in the template."),
		wide("Images", "string", "Images of the containers in the template."),
	}
}

func templateCells(t corev1.PodTemplateSpec) []any {
	var names, images []string
	for _, c := range t.Spec.Containers {
		names, images = append(names, c.Name), append(images, c.Image)
	}
	return []any{strings.Join(names, ","), strings.Join(images, ",")}
}

func replicaSetTable() table {
	return columnsBetween(
		[]metav1.TableColumnDefinition{
			header("Desired", "integer", "Pods that are wanted."),
			header("Current", "integer", "Pods that there are."),
			header("Ready", "integer", "Pods that are ready."),
		},
		append(templateHeaders(), wide("Selector", "string", "Selector of the pods.")),
		func(obj object) (between, after []any) {
			r := obj.(*appsv1.ReplicaSet)
			return []any{int64(replicas(r.Spec.Replicas)), int64(r.Status.Replicas), int64(r.Status.ReadyReplicas)},
				append(templateCells(r.Spec.Template), metav1.FormatLabelSelector(r.Spec.Selector))
		})
}

func statefulSetTable() table {
	return columnsBetween([]metav1.TableColumnDefinition{header("Ready", "string", "Pods that are ready, of those that are wanted.")}, templateHeaders(),
		func(obj object) (between, after []any) {
			s := obj.(*appsv1.StatefulSet)
			return []any{fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, replicas(s.Spec.Replicas))}, templateCells(s.Spec.Template)
		})
}

func serviceTable() table {
	return columnsBetween(
		[]metav1.TableColumnDefinition{
			header("Type", "string", "How it is reached."),
			header("Cluster-IP", "string", "Its address within the cluster."),
			header("External-IP", "string", "Its addresses for others."),
			header("Port(s)", "string", "Its ports, those on the nodes and the protocols."),
		},
		[]metav1.TableColumnDefinition{wide("Selector", "string", "Labels of its pods.")},
		func(obj object) (between, after []any) {
			s := obj.(*corev1.Service)
			address := s.Spec.ClusterIP
			if len(s.Spec.ClusterIPs) > 0 {
				address = s.Spec.ClusterIPs[0]
			}
			return []any{string(s.Spec.Type), orNone(address), externalAddress(s), servicePorts(s)},
				[]any{labels.FormatLabels(s.Spec.Selector)}
		})
}

func externalAddress(s *corev1.Service) string {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return s.Spec.ExternalName
	}
	var all []string
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if ingress.IP != "" {
				all = append(all, ingress.IP)
			} else if ingress.Hostname != "" {
				all = append(all, ingress.Hostname)
			}
		}
		slices.Sort(all)
		if all = append(all, s.Spec.ExternalIPs...); len(all) == 0 {
			return "<pending>"
		}
		return strings.Join(all, ",")
	}
	return orNone(strings.Join(s.Spec.ExternalIPs, ","))
}

func servicePorts(s *corev1.Service) string {
	var all []string
	for _, p := range s.Spec.Ports {
		text := fmt.Sprint(p.Port)
		if p.NodePort > 0 {
			text += fmt.Sprintf(":%d", p.NodePort)
		}
		all = append(all, text+"/"+string(p.Protocol))
	}
	return orNone(strings.Join(all, ","))
}

// eventTable is the one table whose first column is not the name.
func eventTable() table {
	lastName := nameHeader
	lastName.Priority = 1
	return table{
		headers: []metav1.TableColumnDefinition{
			header("Last Seen", "string", "How long ago it happened last."),
			header("Type", "string", "Whether it is normal, or a warning."),
			header("Reason", "string", "Why it happened, in a word."),
			header("Object", "string", "What it happened to."),
			wide("Subobject", "string", "The part that it happened to."),
			wide("Source", "string", "Who tells it."),
			header("Message", "string", "What happened."),
			wide("First Seen", "string", "How long ago it happened first."),
			wide("Count", "string", "How often it happened."),
			lastName,
		},
		cells: func(obj object) []any {
			e := obj.(*corev1.Event)
			first, last, count := eventTimes(e)
			about := strings.ToLower(e.InvolvedObject.Kind)
			if e.InvolvedObject.Name != "" {
				about += "/" + e.InvolvedObject.Name
			}
			return []any{last, e.Type, e.Reason, about, e.InvolvedObject.FieldPath, eventSource(e), strings.TrimSpace(e.Message), first, count, e.Name}
		},
	}
}

// eventTimes says how long ago an event happened first and last, and how often it did:
// older reporters tell these in other fields than newer ones.
func eventTimes(e *corev1.Event) (first, last string, count int64) {
	first, last, count = age(e.FirstTimestamp), age(e.LastTimestamp), max(1, int64(e.Count))
	if e.FirstTimestamp.IsZero() {
		first = age(metav1.NewTime(e.EventTime.Time))
	}
	if e.Series != nil {
		return first, age(metav1.NewTime(e.Series.LastObservedTime.Time)), int64(e.Series.Count)
	}
	if e.LastTimestamp.IsZero() {
		last = first
	}
	return first, last, count
}

// eventSource names who reported an event and where that runs, from the old fields, or
// the new ones if the old ones are empty.
func eventSource(e *corev1.Event) string {
	component, place := e.Source.Component, e.Source.Host
	if component == "" {
		component = e.ReportingController
	}
	if place == "" {
		place = e.ReportingInstance
	}
	if place == "" {
		return component
	}
	return component + ", " + place
}
