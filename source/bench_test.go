package source

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// benchObjects is the number of pods in an answer of the benchmarks.
const benchObjects = 1_000

// benchPod has labels, an owner, a container with environment, and a status.
func benchPod(i int) *corev1.Pod {
	workload := fmt.Sprint("workload-", i/40)
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint(workload, "-", i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: fmt.Sprint(1_000 + i),
			Labels:          map[string]string{"app": workload, "tier": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload, UID: types.UID(workload)}},
		},
		Spec: corev1.PodSpec{
			NodeName:   fmt.Sprint("node-", i%100),
			Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/" + workload, Env: []corev1.EnvVar{{Name: "REGION", Value: "eu-west-1"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.%d.%d", i/256, i%256)},
	}
}

// benchAnswers are the bodies of a list and of a watch, in one encoding.
type benchAnswers struct {
	contentType string
	list, watch []byte
}

func protobufAnswers(b *testing.B) benchAnswers {
	b.Helper()
	a := benchAnswers{contentType: "application/vnd.kubernetes.protobuf"}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9000"}}
	for i := range benchObjects {
		pod := benchPod(i)
		list.Items = append(list.Items, *pod)
		a.watch = append(a.watch, watchFrame(b, "ADDED", envelopeOf(b, "v1", "Pod", pod))...)
	}
	a.list = envelopeOf(b, "v1", "PodList", list)
	return a
}

func jsonAnswers(b *testing.B) benchAnswers {
	b.Helper()
	a := benchAnswers{contentType: "application/json"}
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9000"}}
	for i := range benchObjects {
		pod := benchPod(i)
		list.Items = append(list.Items, *pod)
		a.watch = append(a.watch, jsonFrame("ADDED", jsonOf(b, pod))...)
	}
	a.list = []byte(jsonOf(b, list))
	return a
}

// RoundTrip answers without a network, so that only the work of the source is measured.
func (a benchAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, contentType := a.list, a.contentType
	if r.URL.Query().Get("watch") != "" {
		body = a.watch
		if contentType != "application/json" {
			contentType += ";stream=watch"
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, nil
}

func benchSources(b *testing.B, run func(b *testing.B, s *REST[*corev1.Pod])) {
	for name, answers := range map[string]benchAnswers{"protobuf": protobufAnswers(b), "JSON": jsonAnswers(b)} {
		b.Run(name, func(b *testing.B) {
			client, err := NewClient(&rest.Config{Host: "http://answers.invalid", QPS: -1, Transport: answers}, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			run(b, NewTyped(client, pods, newPod, RESTOptions{}))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchObjects, "ns/object")
		})
	}
}

// BenchmarkList reads and decodes a page of 1,000 pods.
func BenchmarkList(b *testing.B) {
	benchSources(b, func(b *testing.B, s *REST[*corev1.Pod]) {
		for b.Loop() {
			page, err := s.List(context.Background(), ListOptions{})
			if err != nil || len(page.Items) != benchObjects {
				b.Fatalf("%d items, %v", len(page.Items), err)
			}
		}
	})
}

// BenchmarkWatch reads and decodes a watch of 1,000 events, with its request.
func BenchmarkWatch(b *testing.B) {
	benchSources(b, func(b *testing.B, s *REST[*corev1.Pod]) {
		for b.Loop() {
			stream, err := s.Watch(context.Background(), WatchOptions{})
			if err != nil {
				b.Fatal(err)
			}
			events := 0
			for err == nil {
				var batch []Event[*corev1.Pod]
				batch, err = stream.Next()
				events += len(batch)
			}
			if err != io.EOF || events != benchObjects {
				b.Fatalf("%d events, %v", events, err)
			}
			if err := stream.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
