package apisim

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func TestTablesOfDataAndNamespaces(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.seed(
			&corev1.ConfigMap{ObjectMeta: named("c"), Data: map[string]string{"a": "", "b": ""}, BinaryData: map[string][]byte{"c": nil}},
			&corev1.Secret{ObjectMeta: named("s"), Type: corev1.SecretTypeTLS, Data: map[string][]byte{"a": nil}},
		)
		b.want("config maps", b.rows("/api/v1/configmaps"), "Name Data Age", "c 3 0s")
		b.want("secrets", b.rows("/api/v1/secrets"), "Name Type Data Age", "s kubernetes.io/tls 1 0s")
		b.want("a namespace", b.rows("/api/v1/namespaces/default"), "Name Status Age", "default Active 0s")
	})
}

func TestTablesOfWhatMakesPods(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1"}, {Name: "b", Image: "b:1"}}}}
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
		b.seed(
			&appsv1.ReplicaSet{ObjectMeta: named("r"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(3)), Selector: selector, Template: template}, Status: appsv1.ReplicaSetStatus{Replicas: 2, ReadyReplicas: 1}},
			&appsv1.StatefulSet{ObjectMeta: named("s"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3)), Template: template}, Status: appsv1.StatefulSetStatus{ReadyReplicas: 2}},
		)
		b.want("replica sets", b.rows("/apis/apps/v1/replicasets"), "Name Desired Current Ready Age Containers/1 Images/1 Selector/1", "r 3 2 1 0s a,b a:1,b:1 app=x")
		b.want("stateful sets", b.rows("/apis/apps/v1/statefulsets"), "Name Ready Age Containers/1 Images/1", "s 2/3 0s a,b a:1,b:1")
	})
}

func TestTableOfServices(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		service := func(name string, spec corev1.ServiceSpec, addresses ...corev1.LoadBalancerIngress) *corev1.Service {
			return &corev1.Service{ObjectMeta: named(name), Spec: spec, Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: addresses}}}
		}
		ports := []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}, {Port: 53, NodePort: 30053, Protocol: corev1.ProtocolUDP}}
		b.seed(
			service("a", corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1", "fd00::1"}, Ports: ports, Selector: map[string]string{"app": "x"}}),
			service("b", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ClusterIP: "10.0.0.2", ExternalIPs: []string{"192.0.2.1", "192.0.2.2"}}),
			service("c", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}),
			service("d", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"192.0.2.1"}}, corev1.LoadBalancerIngress{Hostname: "lb.example.com"}, corev1.LoadBalancerIngress{IP: "192.0.2.9"}),
			service("e", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"}),
		)
		b.want("services", b.rows("/api/v1/services"), "Name Type Cluster-IP External-IP Port(s) Age Selector/1",
			"a ClusterIP 10.0.0.1 <none> 80/TCP,53:30053/UDP 0s app=x",
			"b NodePort 10.0.0.2 192.0.2.1,192.0.2.2 <none> 0s <none>",
			"c LoadBalancer <none> <pending> <none> 0s <none>",
			"d LoadBalancer <none> 192.0.2.9,lb.example.com,192.0.2.1 <none> 0s <none>",
			"e ExternalName <none> db.example.com <none> 0s <none>")
	})
}

func TestTableOfEvents(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		ago := func(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }
		micro := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(time.Now().Add(-d)) }
		about := corev1.ObjectReference{Kind: "Pod", Name: "p", FieldPath: "spec.containers{a}"}
		b.seed(
			&corev1.Event{ObjectMeta: named("a"), InvolvedObject: about, Type: "Normal", Reason: "Started", Message: "of old\n", FirstTimestamp: ago(time.Hour), LastTimestamp: ago(time.Minute), Count: 4, Source: corev1.EventSource{Component: "kubelet", Host: "n"}},
			&corev1.Event{ObjectMeta: named("b"), InvolvedObject: corev1.ObjectReference{Kind: "Node"}, Type: "Warning", Reason: "Lost", Message: "new", EventTime: micro(time.Hour), ReportingController: "c", ReportingInstance: "c-1"},
			&corev1.Event{ObjectMeta: named("c"), EventTime: micro(time.Hour), Series: &corev1.EventSeries{Count: 7, LastObservedTime: micro(time.Second)}, ReportingController: "c"},
		)
		b.want("events", b.rows("/api/v1/events"),
			"Last Seen Type Reason Object Subobject/1 Source/1 Message First Seen/1 Count/1 Name/1",
			"60s Normal Started pod/p spec.containers{a} kubelet, n of old 60m 4 a",
			"60m Warning Lost node  c, c-1 new 60m 1 b",
			"1s     c  60m 7 c")
	})
}
