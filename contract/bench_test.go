package contract_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// benchPods is the number of pods that the benchmarks sync.
const benchPods = 10_000

// benchPod is a pod of a workload with 40 replicas: most of it is the same for all
// of them, and names, addresses and times are its own. It has about 2 KB in protobuf.
func benchPod(i int) *corev1.Pod {
	workload := fmt.Sprint("workload-", i/40)
	token := fmt.Sprint("token-", i)
	const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	of, fieldRef := resource.MustParse, &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "registry.example.com/team/" + workload + "/" + name + ":v1.2.3",
			Args: []string{"--listen=:8080", "--log-level=info", "--shards=16"},
			Env: []corev1.EnvVar{
				{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: fieldRef}},
				{Name: "REGION", Value: "eu-west-1"},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": of("250m"), "memory": of("512Mi")},
				Limits:   corev1.ResourceList{"memory": of("1Gi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: token, ReadOnly: true, MountPath: mountPath}},
		}
	}
	status := func(name string) corev1.ContainerStatus {
		id, image := fmt.Sprintf("containerd://%064d", i), "registry.example.com/team/"+name
		return corev1.ContainerStatus{Name: name, Ready: true, Image: image, ContainerID: id}
	}
	is := func(c corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: c, Status: corev1.ConditionTrue}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-%d",
				workload, i), UID: types.UID(fmt.Sprint("uid-", i)),
			Labels:      map[string]string{"app": workload, "pod-template-hash": "5f7d8c9b4"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload + "-5f7d8c9b4",
				UID: types.UID(workload), Controller: new(true),
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubelet", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(
					`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}`),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprint("node-", i%100), ServiceAccountName: workload,
			Containers: []corev1.Container{container("app"), container("sidecar")},
			Volumes: []corev1.Volume{{
				Name: token, VolumeSource: corev1.VolumeSource{
					Secret: &corev1.SecretVolumeSource{SecretName: workload},
				},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255),
			Conditions:        []corev1.PodCondition{is(corev1.PodReady), is(corev1.PodScheduled)},
			ContainerStatuses: []corev1.ContainerStatus{status("app"), status("sidecar")},
		},
	}
}

// BenchmarkInitialSync reads 10,000 pods over HTTP into a cache with one handler. The
// server runs in the same process: its encoding is a part of time and allocations,
// and not of the heap.
func BenchmarkInitialSync(b *testing.B) {
	server, err := apisim.New(apisim.Options{HistoryLimit: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	for i := range benchPods {
		if _, err := server.Create(context.Background(), benchPod(i)); err != nil {
			b.Fatal(err)
		}
	}
	for name, transport := range map[string]tidings.Transport{
		"streamed": {}, "in pages": {NoStreamedLists: true},
		"streamed, strings shared": {Sharing: tidings.ShareStrings},
		"streamed, nothing shared": {Sharing: tidings.ShareNothing},
	} {
		o := tidings.FactoryOptions{Transport: transport}
		b.Run(name, func(b *testing.B) { benchmarkSync(b, server, o) })
	}
}

func benchmarkSync(b *testing.B, server *apisim.Server, o tidings.FactoryOptions) {
	var before, after runtime.MemStats
	var bytes, allocations uint64
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		ctx, stop := context.WithCancel(context.Background())
		factory, err := tidings.NewFactory(server.Config(), o)
		if err != nil {
			b.Fatal(err)
		}
		pods, err := tidings.For[*corev1.Pod](factory, tidings.Selection{})
		if err != nil {
			b.Fatal(err)
		}
		registration, err := pods.AddHandler(tidings.Funcs[*corev1.Pod]{
			OnAdd: func(*corev1.Pod, bool) {},
		}, tidings.HandlerOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if err := factory.Start(ctx); err != nil {
			b.Fatal(err)
		}
		<-registration.Synced()
		b.StopTimer()
		runtime.ReadMemStats(&after)
		bytes += after.TotalAlloc - before.TotalAlloc
		allocations += after.Mallocs - before.Mallocs
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n := pods.Lister().Len(); n != benchPods {
			b.Fatalf("%d pods are cached, want %d", n, benchPods)
		}
		stop()
		if err := factory.Shutdown(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchPods, "ns/object")
	b.ReportMetric(float64(bytes)/float64(b.N)/benchPods, "B/object")
	b.ReportMetric(float64(allocations)/float64(b.N)/benchPods, "allocs/object")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/benchPods, "heap-B/object")
}
