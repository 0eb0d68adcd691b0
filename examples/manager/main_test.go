package main

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

var budgetsResource = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs the program, and returns its manager and a function that stops it.
func start(t *testing.T, server *apisim.Server, names string) (*controller.Manager, func()) {
	t.Helper()
	config := server.Config()
	config.QPS = -1
	o := options{
		workers: 2, podTTL: 5 * time.Minute, leaseNamespace: "default",
		logger: slog.New(slog.DiscardHandler),
	}
	fatal(t, o.controllers.Set(names))
	m, err := newManager(config, o)
	fatal(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return m, func() {
		t.Helper()
		cancel()
		fatal(t, <-ended)
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
}

// endedPod is a pod that has ended now.
func endedPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Status: corev1.PodStatus{Phase: corev1.PodSucceeded,
			ContainerStatuses: []corev1.ContainerStatus{{
				State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()},
				},
			}}},
	}
}

// world starts a server with a namespace of a team, two Deployments and a pod that has ended.
func world(t *testing.T) *apisim.Server {
	t.Helper()
	server := apisim.Start(t)
	namespace, err := apisim.Get[*corev1.Namespace](t.Context(), server, "", "default")
	fatal(t, err)
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, teamLabel, "shop")
	_, err = server.Update(t.Context(), namespace)
	fatal(t, err)
	for _, object := range []runtime.Object{deployment("one", 1), deployment("web", 3),
		endedPod("job")} {
		_, err := server.Create(t.Context(), object)
		fatal(t, err)
	}
	return server
}

// exists reports whether the server has an object of a name.
func exists[T runtime.Object](t *testing.T, server *apisim.Server, name string) bool {
	t.Helper()
	_, err := apisim.Get[T](t.Context(), server, "default", name)
	if !apierrors.IsNotFound(err) {
		fatal(t, err)
	}
	return err == nil
}

// team returns the label of a Deployment.
func team(t *testing.T, server *apisim.Server, name string) string {
	t.Helper()
	d, err := apisim.Get[*appsv1.Deployment](t.Context(), server, "default", name)
	fatal(t, err)
	return d.Labels[teamLabel]
}

func TestControllersByName(t *testing.T) {
	for names, want := range map[string]struct{ budgets, podgc, teams bool }{
		"*":        {budgets: true, teams: true},
		"*,podgc":  {true, true, true},
		"*,-pdb":   {teams: true},
		"podgc":    {podgc: true},
		"teams, *": {budgets: true, teams: true},
	} {
		t.Run(names, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := world(t)
				_, stop := start(t, server, names)
				time.Sleep(4 * time.Minute)
				if !exists[*corev1.Pod](t, server, "job") {
					t.Error("the pod is gone before its time")
				}
				time.Sleep(2 * time.Minute)
				got := exists[*policyv1.PodDisruptionBudget](t, server, "web")
				if got != want.budgets {
					t.Errorf("the Deployment has a budget: %v", got)
				}
				if exists[*policyv1.PodDisruptionBudget](t, server, "one") {
					t.Error("the Deployment of one replica has a budget")
				}
				if got := !exists[*corev1.Pod](t, server, "job"); got != want.podgc {
					t.Errorf("the pod is gone: %v", got)
				}
				if got := team(t, server, "web") == "shop"; got != want.teams {
					t.Errorf("the Deployment has the label of its team: %v", got)
				}
				stop()
			})
		})
	}
}

func TestChangesAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := world(t)
		_, stop := start(t, server, "*")
		time.Sleep(time.Second)
		namespace, err := apisim.Get[*corev1.Namespace](t.Context(), server, "", "default")
		fatal(t, err)
		namespace.Labels[teamLabel] = "bank"
		_, err = server.Update(t.Context(), namespace)
		fatal(t, err)
		web, err := apisim.Get[*appsv1.Deployment](t.Context(), server, "default", "web")
		fatal(t, err)
		web.Spec.Replicas = new(int32(1))
		_, err = server.Update(t.Context(), web)
		fatal(t, err)
		time.Sleep(time.Second)
		if got := team(t, server, "web"); got != "bank" {
			t.Errorf("the team is %q", got)
		}
		if exists[*policyv1.PodDisruptionBudget](t, server, "web") {
			t.Error("the Deployment of one replica has a budget")
		}
		stop()
	})
}

func TestAMissingResourceIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := world(t)
		server.RemoveResource(budgetsResource)
		m, stop := start(t, server, "*")
		ready := func() (int, string) {
			recorder := httptest.NewRecorder()
			m.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/readyz?verbose", nil))
			text, err := io.ReadAll(recorder.Body)
			fatal(t, err)
			return recorder.Code, string(text)
		}
		time.Sleep(time.Minute)
		if code, text := ready(); code != 200 || strings.Contains(text, "controller budgets") {
			t.Errorf("readyz answers %d:\n%s", code, text)
		}
		if got := team(t, server, "web"); got != "shop" {
			t.Errorf("the other controller has not run: the team is %q", got)
		}
		server.RestoreResource(budgetsResource)
		time.Sleep(time.Minute)
		if !exists[*policyv1.PodDisruptionBudget](t, server, "web") {
			t.Error("the Deployment has no budget after the resource has come")
		}
		if code, text := ready(); code != 200 || !strings.Contains(text, "[+] controller budgets") {
			t.Errorf("readyz answers %d:\n%s", code, text)
		}
		stop()
	})
}

func TestWrongFlags(t *testing.T) {
	config := apisim.Start(t).Config()
	for _, test := range []struct {
		o    options
		want string
	}{
		{options{controllers: controller.Names{"budget"}, leaseNamespace: "default"},
			`there is no controller "budget": the names are budgets, podgc (off by default), teams`},
		{options{controllers: controller.Names{"teams"}, workers: -1, leaseNamespace: "default"},
			`controller: New "teams": Options.Workers is -1`},
		{options{podTTL: -time.Second}, "--pod-ttl is -1s: use 0 or more"},
		{options{}, "Options.Namespace is empty"},
	} {
		m, err := newManager(config, test.o)
		if err == nil {
			err = m.Run(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("the error is %v, want %s", err, test.want)
		}
	}
}
