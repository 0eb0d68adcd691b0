package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/bench/internal/objects"
)

// TestPopulation looks for the objects of 40 pods, and whether they refer to each other.
func TestPopulation(t *testing.T) {
	sim := apisim.Start(t)
	if err := populate(sim, objects.Replicas); err != nil {
		t.Fatal(err)
	}
	pod := objects.Pod(1)
	for _, c := range []struct {
		resource, namespace, name string
		group                     string
	}{
		{"nodes", "", pod.Spec.NodeName, ""},
		{"replicasets", pod.Namespace, pod.OwnerReferences[0].Name, "apps"},
		{"services", pod.Namespace, "service-0", ""},
		{"endpointslices", pod.Namespace, "service-0-abcde", "discovery.k8s.io"},
	} {
		gvr := corev1.SchemeGroupVersion.WithResource(c.resource)
		gvr.Group = c.group
		found, err := sim.Get(t.Context(), gvr, c.namespace, c.name)
		if err != nil {
			t.Errorf("%s %s: %v", c.resource, c.name, err)
			continue
		}
		switch found := found.(type) {
		case *appsv1.ReplicaSet:
			if found.UID != pod.OwnerReferences[0].UID {
				t.Errorf("the replica set has UID %s, its pods have an owner %s", found.UID, pod.OwnerReferences[0].UID)
			}
		case *discoveryv1.EndpointSlice:
			if !slices.ContainsFunc(found.Endpoints, func(e discoveryv1.Endpoint) bool {
				return e.TargetRef.UID == pod.UID
			}) {
				t.Errorf("the endpoint slice lacks pod %s", pod.Name)
			}
		}
	}
}

func TestPodsFrom(t *testing.T) {
	answer := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	const encoded, other = http.StatusOK, http.StatusTeapot
	handler := podsFrom(answer(encoded), answer(other))
	const protobuf = "application/vnd.kubernetes.protobuf"
	for _, c := range []struct {
		method, url, accept string
		want                int
	}{
		{"GET", "/api/v1/pods?watch=true", protobuf + ",application/json", encoded},
		{"GET", "/api/v1/pods?watch=true", "application/json", http.StatusNotAcceptable},
		{"GET", "/api/v1/pods", protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", http.StatusNotAcceptable},
		{"GET", "/api/v1/pods?labelSelector=a", protobuf, http.StatusNotAcceptable},
		{"GET", "/api/v1/services", "application/json", other},
		{"DELETE", "/api/v1/pods", protobuf, other},
	} {
		request := httptest.NewRequest(c.method, c.url, nil)
		request.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, request); w.Code != c.want {
			t.Errorf("%s %s, accepting %s: %d, want %d", c.method, c.url, c.accept, w.Code, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	second := figures{peak: 2e6, resident: 2e6, heap: 1e6, cpu: time.Second, wall: time.Second}
	first, third := second, second
	first.peak, third.peak = 1e6, 4e6
	got := table([]*copies{{
		program: program{name: "p", version: "v1"},
		results: map[variant][]figures{before: {third, first, second}, after: {second, second}},
	}})
	want := `| program | | peak, MB | resident, MB | live heap, MB | CPU of the start, s | CPU later, s | start, s |
| --- | --- | --- | --- | --- | --- | --- | --- |
| p v1 | before | 2 (1–4) | 2 | 1 | 1.00 | 0.00 | 1.00 |
|  | after | 2 | 2 | 1 | 1.00 | 0.00 | 1.00 |
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
