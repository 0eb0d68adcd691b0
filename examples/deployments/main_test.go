package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/apisim"
)

var resource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

func deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/" + name + ":1"}}},
			},
		},
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := apisim.New(apisim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close() //nolint:errcheck // the test is over
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for _, d := range []*appsv1.Deployment{deployment("default", "web", 2), deployment("kube-system", "dns", 1)} {
			if _, err := server.Create(ctx, d); err != nil {
				t.Fatal(err)
			}
		}

		read, write := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, server.Config(), options{namespace: "default", name: "web", wait: time.Minute}, write)
			write.Close() //nolint:errcheck // a pipe's Close returns nil
		}()
		lines := bufio.NewScanner(read)
		expect := func(want string) {
			t.Helper()
			if !lines.Scan() {
				t.Fatalf("the output ended before %q", want)
			}
			if lines.Text() != want {
				t.Errorf("printed %q, want %q", lines.Text(), want)
			}
		}
		expect("1 deployments in namespace default")
		expect("web has 0 of 2 replicas ready")
		synctest.Wait() // the loop over the events has begun

		if _, err := server.Create(ctx, deployment("default", "api", 1)); err != nil {
			t.Fatal(err)
		}
		expect("Added default/api: 0 of 1 replicas ready")
		obj, err := server.Get(ctx, resource, "default", "web")
		if err != nil {
			t.Fatal(err)
		}
		changed := obj.DeepCopyObject().(*appsv1.Deployment)
		*changed.Spec.Replicas = 5
		if _, err := server.Update(ctx, changed); err != nil {
			t.Fatal(err)
		}
		expect("Updated default/web: replicas 2 → 5")
		if _, err := server.Delete(ctx, resource, "default", "api"); err != nil {
			t.Fatal(err)
		}
		expect("Deleted default/api")

		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := apisim.New(apisim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close() //nolint:errcheck // the test is over
		server.SetAvailable(false)
		err = run(t.Context(), server.Config(), options{namespace: "default", wait: 5 * time.Second}, io.Discard)
		for _, part := range []string{"longer than 5s", "deployments.v1.apps [in default]", "Backoff"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %q: %v", part, err)
			}
		}
	})
}
