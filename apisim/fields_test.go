package apisim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestFieldSelectors selects one of two objects by every field that its resource has
// beyond its name.
func TestFieldSelectors(t *testing.T) {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	reference := corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p", UID: "u", APIVersion: "v1", ResourceVersion: "7", FieldPath: "spec"}
	regarding := func(prefix string) []string {
		return []string{prefix + "kind=Pod", prefix + "namespace=default", prefix + "name=p", prefix + "uid=u", prefix + "apiVersion=v1", prefix + "resourceVersion=7", prefix + "fieldPath=spec"}
	}
	tests := []struct {
		path      string
		match     object
		other     object
		selectors []string
	}{
		{
			"/api/v1/pods",
			&corev1.Pod{ObjectMeta: meta("a"), Spec: corev1.PodSpec{NodeName: "n", RestartPolicy: "Never", SchedulerName: "s", ServiceAccountName: "sa", HostNetwork: true},
				Status: corev1.PodStatus{Phase: "Running", PodIP: "10.0.0.1", NominatedNodeName: "m"}},
			&corev1.Pod{ObjectMeta: meta("b")},
			[]string{"spec.nodeName=n", "spec.host=n", "spec.restartPolicy=Never", "spec.schedulerName=s", "spec.serviceAccountName=sa", "spec.hostNetwork=true",
				"spec.hostNetwork!=false", "status.phase=Running", "status.phase!=Pending", "status.podIP=10.0.0.1", "status.nominatedNodeName=m", "spec.nodeName=n,status.phase=Running", "spec.nodeName!="},
		},
		{"/api/v1/nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{Unschedulable: true}}, nodeNamed("b"), []string{"spec.unschedulable=true", "spec.unschedulable!=false"}},
		{"/api/v1/secrets", &corev1.Secret{ObjectMeta: meta("a"), Type: "Opaque"}, &corev1.Secret{ObjectMeta: meta("b"), Type: "x"}, []string{"type=Opaque"}},
		{"/api/v1/services", &corev1.Service{ObjectMeta: meta("a"), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Type: "ClusterIP"}}, &corev1.Service{ObjectMeta: meta("b")}, []string{"spec.clusterIP=10.0.0.1", "spec.type=ClusterIP"}},
		{"/api/v1/replicationcontrollers", &corev1.ReplicationController{ObjectMeta: meta("a"), Status: corev1.ReplicationControllerStatus{Replicas: 2}}, &corev1.ReplicationController{ObjectMeta: meta("b")}, []string{"status.replicas=2", "status.replicas!=0"}},
		{"/apis/apps/v1/replicasets", &appsv1.ReplicaSet{ObjectMeta: meta("a"), Status: appsv1.ReplicaSetStatus{Replicas: 2}}, &appsv1.ReplicaSet{ObjectMeta: meta("b")}, []string{"status.replicas=2"}},
		{"/apis/batch/v1/jobs", &batchv1.Job{ObjectMeta: meta("a"), Status: batchv1.JobStatus{Succeeded: 2}}, &batchv1.Job{ObjectMeta: meta("b")}, []string{"status.successful=2"}},
		{
			"/apis/certificates.k8s.io/v1/certificatesigningrequests",
			&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: "example.com/s"}},
			&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, []string{"spec.signerName=example.com/s"},
		},
		{
			"/apis/resource.k8s.io/v1/resourceslices",
			&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: resourcev1.ResourceSliceSpec{NodeName: new("n"), Driver: "d"}},
			&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, []string{"spec.nodeName=n", "spec.driver=d"},
		},
		{
			"/api/v1/events",
			&corev1.Event{ObjectMeta: meta("a"), InvolvedObject: reference, Reason: "r", Type: "Normal", ReportingController: "c"}, &corev1.Event{ObjectMeta: meta("b"), Source: corev1.EventSource{Component: "s"}},
			append(regarding("involvedObject."), "reason=r", "type=Normal", "reportingComponent=c", "source=c", "source!=s"),
		},
		{
			"/apis/events.k8s.io/v1/events",
			&eventsv1.Event{ObjectMeta: meta("a"), Regarding: reference, Reason: "r", Type: "Normal", ReportingController: "c"}, &eventsv1.Event{ObjectMeta: meta("b")},
			append(regarding("regarding."), "reason=r", "type=Normal", "reportingController=c"),
		},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				b.seed(test.match, test.other)
				p := parsePath(test.path)
				res, err := b.server.find(p.gvr)
				b.must(err)
				for _, field := range res.knownFields() {
					if !strings.HasPrefix(field, "metadata.") && field != "status.podIPs" && !slices.ContainsFunc(test.selectors, func(s string) bool { return strings.HasPrefix(s, field) }) {
						b.Errorf("no selector for %s", field)
					}
				}
				for _, selector := range append(test.selectors, "metadata.name=a", "metadata.name!=b") {
					var list metav1.PartialObjectMetadataList
					_, text := b.get("GET", test.path+"?fieldSelector="+selector, "")
					b.decode(text, &list)
					if len(list.Items) != 1 || list.Items[0].Name != "a" {
						b.Errorf("%s selects %s", selector, text)
					}
				}
				if code, text := b.get("GET", test.path+"?fieldSelector=spec.nosuch=1", ""); code != 400 || !strings.Contains(text, "field label not supported: spec.nosuch") {
					b.Errorf("%d %s", code, text)
				}
			})
		})
	}
}

func TestFieldSelectorsOfNamespaces(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.want("terminating", b.rows("/api/v1/namespaces?fieldSelector=status.phase=Terminating"), "Name Age")
		b.want("by name", b.rows("/api/v1/namespaces?fieldSelector=status.phase=Active,metadata.name=default"), "Name Age", "default 0s")
		if code, _ := b.get("GET", "/api/v1/namespaces?fieldSelector=metadata.namespace=default", ""); code != 400 {
			b.Errorf("by a namespace, which they have not: %d", code)
		}
		if code, _ := b.get("GET", "/apis/example.com/v1/widgets?fieldSelector=metadata.name=a", ""); code != 404 {
			b.Errorf("of no resource: %d", code)
		}
	})
}

func TestSecretsAreKeptAsData(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		secrets := b.typed.CoreV1().Secrets("default")
		made, err := secrets.Create(b.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string][]byte{"k": []byte("1")}, StringData: map[string]string{"k": "2"}}, metav1.CreateOptions{})
		if err != nil || string(made.Data["k"]) != "2" || made.StringData != nil {
			b.Errorf("made %+v, %v", made, err)
		}
		made.StringData = map[string]string{"l": "3"}
		if made, err = secrets.Update(b.ctx, made, metav1.UpdateOptions{}); err != nil || string(made.Data["l"]) != "3" || len(made.Data) != 2 || made.StringData != nil {
			b.Errorf("updated %+v, %v", made, err)
		}
	})
}

func TestTypedAndMapsAreConverted(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.seed(b.fromYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: default}, data: {k: v}}"))
		got, err := b.typed.CoreV1().ConfigMaps("default").Get(b.ctx, "m", metav1.GetOptions{})
		if err != nil || got.Data["k"] != "v" {
			b.Errorf("a map became %+v, %v", got, err)
		}
		b.must(b.server.Register(Resource{Group: "example.com", Version: "v1", Name: "mirrors", Kind: "Mirror", Namespaced: true}))
		typed := configMap("t")
		typed.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Mirror"})
		b.seed(typed)
		b.want("a typed object of a custom kind", b.rows("/apis/example.com/v1/mirrors"), "Name Age", "t 0s")
		if _, err := b.server.Create(b.ctx, b.fromYAML("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: 7}")); err == nil || !strings.Contains(err.Error(), "cannot be handled as a Pod") {
			b.Errorf("a pod of a wrong form: %v", err)
		}
		if _, err := b.server.Create(b.ctx, b.fromYAML("{apiVersion: v9, kind: Pod, metadata: {name: p}}")); err == nil || !strings.Contains(fmt.Sprint(err), "no resource serves the kind") {
			b.Errorf("an unknown kind: %v", err)
		}
	})
}
