package main

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime/debug"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
)

// The other objects beside so many pods.
const (
	podsOfAService = 10   // a service has an endpoint slice
	nodes          = 1000 // those of objects.Pod
)

// cluster is the API server of all programs.
type cluster struct {
	*httptest.Server
	sim        *apisim.Server
	full       *apisim.Snapshot
	kubeconfig string
}

// serve starts the API server, with definitions of the programs' custom resources.
func serve(pods int, all []*copies) (*cluster, error) {
	debug.SetGCPercent(400) // so that it seldom collects beside a program
	encoded, err := server.Encode(server.Spec{
		Kind: objects.Pods, Objects: pods, Encoding: server.Protobuf,
	})
	if err != nil {
		return nil, err
	}
	sim, err := apisim.New(apisim.Options{Seed: 1})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		for _, dir := range c.crds {
			if err := sim.Load(filepath.Join(c.dirs[before], dir)); err != nil {
				return nil, err
			}
		}
	}
	if err := populate(sim, pods); err != nil {
		return nil, err
	}
	c := &cluster{sim: sim, full: sim.Snapshot()}
	c.Server = httptest.NewServer(podsFrom(server.Handler(encoded), sim))
	place, err := home()
	if err != nil {
		return nil, err
	}
	c.kubeconfig = filepath.Join(place, "kubeconfig")
	config := api.NewConfig()
	const name = "programs"
	config.Clusters[name] = &api.Cluster{Server: c.URL}
	config.Contexts[name] = &api.Context{Cluster: name}
	config.CurrentContext = name
	return c, clientcmd.WriteToFile(*config, c.kubeconfig)
}

// reset brings the server back to the state before the first program.
func (c *cluster) reset() {
	c.sim.Rewind(c.full)
	c.sim.ForgetRequests()
	debug.FreeOSMemory()
}

// podsFrom takes lists and watches of all pods to a handler that has them encoded, in protobuf and
// as a stream, and everything else to another one. Requests for pods in another form fail.
func podsFrom(pods, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case r.Method != http.MethodGet || r.URL.Path != objects.Pods.Path():
			other.ServeHTTP(w, r)
		case query.Get("labelSelector")+query.Get("fieldSelector") != "" ||
			!strings.Contains(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf") ||
			strings.Contains(r.Header.Get("Accept"), "as="):
			log.Printf("not served: %s, accepting %s", r.URL, r.Header.Get("Accept"))
			http.Error(w, "this server has all pods, in protobuf", http.StatusNotAcceptable)
		default:
			pods.ServeHTTP(w, r)
		}
	})
}

// populate adds the objects that belong to so many pods.
func populate(sim *apisim.Server, pods int) error {
	var manifests bytes.Buffer
	encoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{})
	add := func(o runtime.Object) error {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
		manifests.WriteString("---\n")
		return encoder.Encode(o, &manifests)
	}
	for i := range nodes {
		if err := add(node(i)); err != nil {
			return err
		}
	}
	for i := range pods {
		if err := add(replicaSet(i)); err != nil {
			return err
		}
	}
	for i := range pods / podsOfAService {
		s := service(i)
		if err := add(s); err != nil {
			return err
		}
		if err := add(endpointSlice(s, i)); err != nil {
			return err
		}
	}
	return sim.LoadFrom("population", &manifests)
}

// node returns the node of a number.
func node(number int) *corev1.Node {
	name := objects.Node(number)
	size := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods:   resource.MustParse("250"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Spec: corev1.NodeSpec{ProviderID: "other://" + name},
		Status: corev1.NodeStatus{
			Capacity: size, Allocatable: size,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// replicaSet returns the replica set of the workload of a number. Workloads without pods stand for
// earlier revisions.
func replicaSet(workload int) *appsv1.ReplicaSet {
	pod := objects.Pod(workload * objects.Replicas)
	owner := pod.OwnerReferences[0]
	deployment := strings.TrimSuffix(owner.Name, "-"+pod.Labels["pod-template-hash"])
	meta := pod.ObjectMeta
	meta.GenerateName, meta.Name, meta.UID, meta.ResourceVersion = "", owner.Name, owner.UID, ""
	meta.Annotations = map[string]string{
		"deployment.kubernetes.io/desired-replicas": "40",
		"deployment.kubernetes.io/max-replicas":     "50",
		"deployment.kubernetes.io/revision":         "12",
	}
	meta.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "Deployment", Name: deployment, UID: "deployment-of-" + owner.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	selector := &metav1.LabelSelector{MatchLabels: pod.Labels}
	return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32(0)), Selector: selector,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}},
	}}
}

// service returns the service of a number, for some of the pods.
func service(number int) *corev1.Service {
	pod := objects.Pod(number * podsOfAService)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: fmt.Sprintf("service-%d", number), Labels: pod.Labels,
			CreationTimestamp: pod.CreationTimestamp, ManagedFields: pod.ManagedFields,
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: pod.Labels, ClusterIP: pod.Status.PodIP,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
		},
	}
}

// endpointSlice returns the endpoint slice of a service.
func endpointSlice(s *corev1.Service, number int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name + "-abcde", CreationTimestamp: s.CreationTimestamp,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
	}
	for i := range podsOfAService {
		pod := objects.Pod(number*podsOfAService + i)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, NodeName: &pod.Spec.NodeName,
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{
				Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			},
		})
	}
	return slice
}
