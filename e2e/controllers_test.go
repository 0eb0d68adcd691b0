package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/tidings-go/tidings/e2e/internal/cluster"
)

// controllers are those that run in the tests, by their names in kube-controller-manager.
var controllers = []string{
	names.DeploymentController, names.ReplicaSetController, names.StatefulSetController,
	names.DaemonSetController, names.JobController, names.CronJobController,
	names.NamespaceController, names.GarbageCollectorController,
	names.ServiceAccountController, names.ResourceQuotaController, names.EndpointSliceController,
	names.DisruptionController, names.PodGarbageCollectorController, names.TTLAfterFinishedController,
}

const nodes = 3

// TestControllers runs the controllers and the scheduler of Kubernetes on the informers of this
// project, and then on client-go's, and compares the results of the same steps.
func TestControllers(t *testing.T) {
	results := map[string][]string{}
	for name, informers := range map[string]cluster.Informers{
		"tidings": cluster.Tidings(), "client-go": cluster.ClientGo(),
	} {
		if !t.Run(name, func(t *testing.T) { results[name] = runControllers(t, informers) }) {
			return
		}
	}
	for i, want := range results["client-go"] {
		if got := results["tidings"][i]; got != want {
			t.Errorf("the results differ at step %d\ntidings:\n%s\nclient-go:\n%s", i, got, want)
		}
	}
}

// runControllers returns the description of the world after each step.
func runControllers(t *testing.T, informers cluster.Informers) []string {
	arguments := []string{"--disable-admission-plugins="} // for service accounts
	server := newServer(t, arguments...)
	ctx, stop := context.WithCancel(t.Context())
	c, err := cluster.Start(ctx, server.Config(), informers, nodes, controllers...)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	defer c.Wait()
	defer stop()
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, client: client}
	var results []string
	for _, step := range steps {
		if err := step.do(ctx, w); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		results = append(results, step.name+"\n"+w.becomes(ctx, step.name, step.want))
	}
	return results
}

// world is a namespace in which controllers work.
type world struct {
	*testing.T
	client kubernetes.Interface
}

const shop = "shop"

// patience bounds the wait for a state. After an outage of a minute, informers wait for up to 45
// seconds, and more than once if the server's first answers are errors.
const patience = 3 * time.Minute

// becomes waits until the description of the world is the wanted one, and returns it.
func (w *world) becomes(ctx context.Context, step, want string) string {
	w.Helper()
	want = strings.Join(strings.Fields(want), " ")
	var is string
	began := time.Now()
	err := eventually(ctx, patience, func(ctx context.Context) (bool, error) {
		now, err := w.describe(ctx)
		if err == nil {
			is = now
		}
		return is == want, err
	})
	if err != nil {
		w.Fatalf("%s: %v\nthe world is: %s\nwant:         %s", step, err, is, want)
	}
	w.Logf("%-40s %v", step, time.Since(began).Round(time.Millisecond))
	return is
}

// eventually asks again and again whether something holds, until it does.
func eventually(
	ctx context.Context, within time.Duration, holds func(context.Context) (bool, error),
) error {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := holds(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("not within %v", within), err)
		case <-ticker.C:
		}
	}
}

// describe lists the objects of the namespace, without random names and addresses.
func (w *world) describe(ctx context.Context) (string, error) {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	o := metav1.ListOptions{}
	deployments, err1 := w.client.AppsV1().Deployments(shop).List(ctx, o)
	sets, err2 := w.client.AppsV1().ReplicaSets(shop).List(ctx, o)
	daemons, err3 := w.client.AppsV1().DaemonSets(shop).List(ctx, o)
	jobs, err4 := w.client.BatchV1().Jobs(shop).List(ctx, o)
	pods, err5 := w.client.CoreV1().Pods(shop).List(ctx, o)
	slicesOf, err6 := w.client.DiscoveryV1().EndpointSlices(shop).List(ctx, o)
	quotas, err7 := w.client.CoreV1().ResourceQuotas(shop).List(ctx, o)
	accounts, err8 := w.client.CoreV1().ServiceAccounts(shop).List(ctx, o)
	_, missing := w.client.CoreV1().Namespaces().Get(ctx, shop, metav1.GetOptions{})
	if apierrors.IsNotFound(missing) {
		add("no namespace")
	}
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return "", err
	}
	for _, d := range deployments.Items {
		add("deployment/%s:%d/%d/%d", d.Name, d.Status.ReadyReplicas, d.Status.UpdatedReplicas,
			d.Status.Replicas)
	}
	for _, s := range sets.Items {
		add("replicaset/%s:%d", s.Spec.Template.Spec.Containers[0].Image, s.Status.ReadyReplicas)
	}
	for _, d := range daemons.Items {
		add("daemonset/%s:%d/%d", d.Name, d.Status.NumberReady, d.Status.DesiredNumberScheduled)
	}
	for _, j := range jobs.Items {
		add("job/%s:%d", j.Name, j.Status.Succeeded)
	}
	for group, n := range countPods(pods.Items) {
		add("pods/%s:%d", group, n)
	}
	for _, s := range slicesOf.Items {
		ready := 0
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				ready++
			}
		}
		add("endpoints/%s:%d", s.Labels[discoveryv1.LabelServiceName], ready)
	}
	for _, q := range quotas.Items {
		used := q.Status.Used[corev1.ResourcePods]
		add("quota/%s:%s", q.Name, used.String())
	}
	for _, a := range accounts.Items {
		add("account/%s", a.Name)
	}
	slices.Sort(all)
	return strings.Join(all, " "), nil
}

// countPods counts pods by phase and kind of their owner.
func countPods(pods []corev1.Pod) map[string]int {
	count := map[string]int{}
	for _, p := range pods {
		owner := "nobody"
		if len(p.OwnerReferences) > 0 {
			owner = p.OwnerReferences[0].Kind
		}
		count[fmt.Sprintf("%s-of-%s", strings.ToLower(string(p.Status.Phase)), owner)]++
	}
	return count
}

// step is a change and the world that it should lead to.
type step struct {
	name string
	do   func(context.Context, *world) error
	want string
}

var app = map[string]string{"app": "web"}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: app},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func (w *world) change(ctx context.Context, f func(*appsv1.Deployment)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d, err := w.client.AppsV1().Deployments(shop).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		f(d)
		_, err = w.client.AppsV1().Deployments(shop).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
}

var steps = []step{
	{"create a namespace", func(ctx context.Context, w *world) error {
		_, err := w.client.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}, metav1.CreateOptions{})
		return err
	}, `account/default`},
	{"limit its pods", func(ctx context.Context, w *world) error {
		_, err := w.client.CoreV1().ResourceQuotas(shop).Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "all"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("30")}},
		}, metav1.CreateOptions{})
		return err
	}, `account/default quota/all:0`},
	{"roll out", func(ctx context.Context, w *world) error {
		_, err := w.client.AppsV1().Deployments(shop).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)),
				Selector: &metav1.LabelSelector{MatchLabels: app}, Template: template("web:1")},
		}, metav1.CreateOptions{})
		return err
	}, `account/default deployment/web:3/3/3 pods/running-of-ReplicaSet:3 quota/all:3
		replicaset/web:1:3`},
	{"serve", func(ctx context.Context, w *world) error {
		_, err := w.client.CoreV1().Services(shop).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: app, Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		return err
	}, `account/default deployment/web:3/3/3 endpoints/web:3 pods/running-of-ReplicaSet:3
		quota/all:3 replicaset/web:1:3`},
	{"scale", func(ctx context.Context, w *world) error {
		return w.change(ctx, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(12)) })
	}, `account/default deployment/web:12/12/12 endpoints/web:12 pods/running-of-ReplicaSet:12
		quota/all:12 replicaset/web:1:12`},
	{"roll forward", func(ctx context.Context, w *world) error {
		return w.change(ctx, func(d *appsv1.Deployment) { d.Spec.Template = template("web:2") })
	}, `account/default deployment/web:12/12/12 endpoints/web:12 pods/running-of-ReplicaSet:12
		quota/all:12 replicaset/web:1:0 replicaset/web:2:12`},
	{"roll back", func(ctx context.Context, w *world) error {
		return w.change(ctx, func(d *appsv1.Deployment) { d.Spec.Template = template("web:1") })
	}, `account/default deployment/web:12/12/12 endpoints/web:12 pods/running-of-ReplicaSet:12
		quota/all:12 replicaset/web:1:12 replicaset/web:2:0`},
	{"run a job and a daemon", func(ctx context.Context, w *world) error {
		spec := template("job:1").Spec
		spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := w.client.BatchV1().Jobs(shop).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "count"},
			Spec: batchv1.JobSpec{Completions: new(int32(4)), Parallelism: new(int32(2)),
				Template: corev1.PodTemplateSpec{Spec: spec}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		watch := template("watch:1")
		watch.Labels = map[string]string{"app": "watch"}
		_, err = w.client.AppsV1().DaemonSets(shop).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "watch"},
			Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: watch.Labels},
				Template: watch},
		}, metav1.CreateOptions{})
		return err
	}, `account/default daemonset/watch:3/3 deployment/web:12/12/12 endpoints/web:12 job/count:4
		pods/running-of-DaemonSet:3
		pods/running-of-ReplicaSet:12 pods/succeeded-of-Job:4 quota/all:15 replicaset/web:1:12 replicaset/web:2:0`},
	{"delete owners", func(ctx context.Context, w *world) error {
		background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
		return errors.Join(
			w.client.AppsV1().Deployments(shop).Delete(ctx, "web", background),
			w.client.BatchV1().Jobs(shop).Delete(ctx, "count",
				metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}),
		)
	}, `account/default daemonset/watch:3/3 endpoints/web:0 pods/running-of-DaemonSet:3 quota/all:3`},
	{"delete the namespace", func(ctx context.Context, w *world) error {
		return w.client.CoreV1().Namespaces().Delete(ctx, shop, metav1.DeleteOptions{})
	}, `no namespace`},
}
