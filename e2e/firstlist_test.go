package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/source"
)

// BenchmarkFirstList lists 10,000 objects in pages, as a first list does by default and as
// Transport.ConsistentFirstList has it, and measures the processor time of a real API
// server with its etcd, for one list.
func BenchmarkFirstList(b *testing.B) {
	const objects = 10_000
	server := newServer(b)
	config := server.Config()
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	data := map[string]string{"text": strings.Repeat("x", 1<<10)}
	for i := range objects {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", i)}, Data: data}
		if _, err := kube.CoreV1().ConfigMaps("default").Create(b.Context(), m,
			metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	client, err := source.NewClient(config, nil)
	if err != nil {
		b.Fatal(err)
	}
	maps := source.NewTyped(client, source.Resource{Version: "v1", Name: "configmaps",
		Kind: "ConfigMap", Scope: source.ScopeNamespaced},
		func() *corev1.ConfigMap { return new(corev1.ConfigMap) }, source.RESTOptions{Namespace: "default"})
	for name, version := range map[string]string{"at hand": "0", "consistent": ""} {
		b.Run(name, func(b *testing.B) {
			before := processorTime(b, kube.RESTClient())
			for b.Loop() {
				if n := readAll(b, maps, version); n < objects {
					b.Fatalf("%d objects", n)
				}
			}
			b.ReportMetric((processorTime(b, kube.RESTClient())-before)*1000/float64(b.N), "server-ms/op")
		})
	}
}

// readAll reads all pages of a list and returns how many objects they have.
func readAll(b *testing.B, maps *source.REST[*corev1.ConfigMap], version string) (n int) {
	o := source.ListOptions{Version: version, Limit: 500}
	for {
		page, err := maps.List(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		n += len(page.Items)
		if page.Continue == "" {
			return n
		}
		o.Version, o.Continue = "", page.Continue
	}
}

// processorTime returns how many seconds the processors have worked for the server.
func processorTime(b *testing.B, client rest.Interface) float64 {
	text, err := client.Get().AbsPath("/metrics").DoRaw(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "\nprocess_cpu_seconds_total ")
	if !ok {
		b.Fatal("the server has no process_cpu_seconds_total")
	}
	line, _, _ := strings.Cut(after, "\n")
	seconds, err := strconv.ParseFloat(line, 64)
	if err != nil {
		b.Fatal(err)
	}
	return seconds
}
