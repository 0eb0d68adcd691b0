package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
)

// world is a server on which a test plays the controller of ReplicaSets.
type world struct {
	*testing.T
	server *apisim.Server
	token  string // of the program; "" is none
}

func inWorld(t *testing.T, test func(*world)) {
	synctest.Test(t, func(t *testing.T) { test(&world{T: t, server: apisim.Start(t)}) })
}

func (w *world) fatal(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// replica is the program, with a user agent of its own.
type replica struct {
	*program
	stop func() error // returns the error of Run
}

func (w *world) start(userAgent string) *replica {
	w.Helper()
	config := w.server.Config()
	config.UserAgent, config.QPS, config.BearerToken = userAgent, -1, w.token
	p, err := newProgram(config, options{
		leaseNamespace: "default", workers: 4,
		logger: slog.New(slog.DiscardHandler),
	})
	w.fatal(err)
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return &replica{p, func() error {
		cancel()
		return <-ended
	}}
}

// checkProbes asks that the replica is alive and ready, and that it has metrics.
func (r *replica) checkProbes(t *testing.T) {
	t.Helper()
	for path, want := range map[string]string{
		"/livez": "ok", "/readyz": "ok",
		"/metrics": `tidings_informer_synced{informer="deployments.v1.apps"} 1`,
	} {
		recorder := httptest.NewRecorder()
		r.handler.ServeHTTP(recorder, httptest.NewRequest("GET", path, nil))
		if recorder.Code != 200 || !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("%s answers %d: %s", path, recorder.Code, recorder.Body)
		}
	}
}

// pass lets virtual time pass, and makes the pods of each ReplicaSet ready every second.
func (w *world) pass(d time.Duration) {
	w.Helper()
	for range int(d / time.Second) {
		time.Sleep(time.Second)
		synctest.Wait()
		for _, set := range list[*appsv1.ReplicaSet](w, "replicasets") {
			n := *set.Spec.Replicas
			if set.Status.ReadyReplicas == n {
				continue
			}
			set.Status = appsv1.ReplicaSetStatus{Replicas: n, ReadyReplicas: n}
			_, err := w.server.Update(w.Context(), set)
			if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				w.fatal(err)
			}
		}
	}
	synctest.Wait()
}

// list returns the objects of a resource of the group apps on the server.
func list[T any](w *world, resource string) (all []T) {
	w.Helper()
	objects, _, err := w.server.List(w.Context(), appsv1.SchemeGroupVersion.WithResource(resource),
		"")
	w.fatal(err)
	for _, object := range objects {
		all = append(all, object.(T))
	}
	return all
}

// edit changes an object of the namespace default on the server.
func edit[T interface {
	comparable
	metav1.Object
	DeepCopy() T
}](w *world, name string, get func(context.Context, *apisim.Server, string, string) (T, error),
	update func(context.Context, *apisim.Server, T) (T, error), change func(T)) {
	w.Helper()
	object, err := get(w.Context(), w.server, "default", name)
	w.fatal(err)
	change(object)
	_, err = update(w.Context(), w.server, object)
	w.fatal(err)
}

// deployment has the image of a version, and mentions the ConfigMap "settings".
func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "main",
						Image: "registry.example/main:1"}},
					Volumes: []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
						},
					}}},
				},
			},
		},
	}
}

func settings(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
		Data:       map[string]string{"value": value},
	}
}

// check asks that each Deployment has just one ReplicaSet, of its template and replicas, and
// that their statuses agree.
func (w *world) check(deployments int) {
	w.Helper()
	sets := map[string][]*appsv1.ReplicaSet{}
	for _, set := range list[*appsv1.ReplicaSet](w, "replicasets") {
		owner := metav1.GetControllerOf(set)
		sets[owner.Name+" "+string(owner.UID)] = append(sets[owner.Name+" "+string(owner.UID)], set)
	}
	all := list[*appsv1.Deployment](w, "deployments")
	if len(all) != deployments || len(sets) != deployments {
		w.Errorf("%d Deployments and the ReplicaSets of %d; want %d", len(all), len(sets),
			deployments)
	}
	for _, d := range all {
		problem := func(format string, args ...any) {
			w.Errorf("Deployment %s: %s", d.Name, fmt.Sprintf(format, args...))
		}
		own := sets[d.Name+" "+string(d.UID)]
		if len(own) != 1 {
			problem("%d ReplicaSets", len(own))
			continue
		}
		want := d.Spec.Template.Spec.Containers[0].Image
		if got := own[0].Spec.Template.Spec.Containers[0].Image; got != want {
			problem("the image is %s, want %s", got, want)
		}
		n := *d.Spec.Replicas
		if got := *own[0].Spec.Replicas; got != n {
			problem("%d replicas, want %d", got, n)
		}
		status := appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n,
		}
		if got := d.Status; got.String() != status.String() {
			problem("the status is %v, want %v", got, status)
		}
	}
}
