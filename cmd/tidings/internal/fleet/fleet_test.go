package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apisim"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig is a fleet on a server to which the test writes too.
type rig struct {
	t *testing.T
	*Fleet
	now     time.Time
	changes []string
}

func populated(t *testing.T, seed uint64, pods int) *rig {
	t.Helper()
	r := &rig{t: t, now: began}
	report := func(c Change) {
		r.changes = append(r.changes, fmt.Sprintf("%T %s %s", c.Object, c.Object.GetName(),
			c.Object.GetResourceVersion()))
	}
	server := apisim.Options{Seed: seed + 1}.Start(t)
	r.Fleet = New(server, Options{Seed: seed, Pods: pods, OnWrite: report})
	if err := r.Populate(t.Context(), r.now); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) steps(n int) {
	r.t.Helper()
	for i := range n {
		r.now = r.now.Add(time.Second)
		if err := r.Step(r.now); err != nil {
			r.t.Fatalf("step %d: %v", i, err)
		}
	}
}

// answers makes all writes that those of the test require.
func (r *rig) answers() {
	r.t.Helper()
	for answered := true; answered; {
		var err error
		if answered, err = r.answer(r.now); err != nil {
			r.t.Fatal(err)
		}
	}
}

func all[T Object](r *rig, of T) []T {
	r.t.Helper()
	objects, err := list(r.Fleet, of, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return objects
}

func (r *rig) deployments() []*appsv1.Deployment { return all(r, new(appsv1.Deployment)) }
func (r *rig) pods() []*corev1.Pod               { return all(r, new(corev1.Pod)) }

// write changes an object as another client does.
func write[T Object](r *rig, obj T, change func(T)) {
	r.t.Helper()
	next := obj.DeepCopyObject().(T)
	change(next)
	if _, err := r.server.Update(r.t.Context(), next); err != nil {
		r.t.Fatal(err)
	}
	r.Touch(obj.GetNamespace())
}

// drop deletes an object as another client does.
func (r *rig) drop(obj Object) {
	r.t.Helper()
	_, err := r.server.Delete(r.t.Context(), resourceOf(obj), obj.GetNamespace(), obj.GetName())
	if err != nil {
		r.t.Fatal(err)
	}
	r.Touch(obj.GetNamespace())
}

// checkSettled checks that every deployment has the pods that it asks for, and that nothing is
// left of deleted ones.
func (r *rig) checkSettled() {
	r.t.Helper()
	for _, namespace := range append(r.namespaces, "default") {
		apps, orphans, err := r.apps(namespace)
		if err != nil || len(orphans) > 0 {
			r.t.Errorf("%s: %d objects have no owner: %v", namespace, len(orphans), err)
		}
		for _, a := range apps {
			a.chooseSet()
			_, ready := a.count(a.set)
			want, keeps := wanted(a.deployment), int(historyLimit(a.deployment))
			if a.set == nil || ready != want || len(a.pods) != int(want) || len(a.old) > keeps ||
				a.deployment.Status.ReadyReplicas != want {
				r.t.Errorf("%s has %d pods, %d of them ready, and %d old replica sets; want %d",
					a.name(), len(a.pods), ready, len(a.old), want)
			}
		}
	}
}

// settleAll reconciles all namespaces.
func (r *rig) settleAll() {
	r.t.Helper()
	for _, namespace := range append(r.namespaces, "default") {
		r.Touch(namespace)
	}
	r.answers()
	r.checkSettled()
}

func TestSeedDecidesTheFleet(t *testing.T) {
	changes := func(seed uint64) string {
		r := populated(t, seed, 100)
		r.steps(300)
		return fmt.Sprint(r.changes)
	}
	once := changes(7)
	if once != changes(7) {
		t.Error("two fleets of one seed differ after 300 steps")
	}
	if once == changes(8) {
		t.Error("the fleets of two seeds are the same")
	}
}

func TestEveryStepMakesOneWrite(t *testing.T) {
	r := populated(t, 1, 200)
	r.checkSettled()
	for _, pod := range r.pods() {
		if pod.Status.StartTime.Time.Before(began) || pod.Status.Conditions[0].LastTransitionTime.Time.Before(began) {
			t.Errorf("%s is older than the fleet", pod.Name)
		}
	}
	r.steps(1000)
	if len(r.changes) < 985 || len(r.changes) > 1000 { // a setting may change to itself
		t.Errorf("1,000 steps made %d changes", len(r.changes))
	}
	if pods := len(r.pods()); pods < 170 || pods > 230 {
		t.Errorf("200 pods became %d", pods)
	}
	r.settleAll()
	for _, pods := range []int{-1, 1, 2} {
		small := populated(t, 5, pods)
		small.steps(300)
		small.settleAll()
	}
}

func TestScalingAndImagesOfOtherClientsAreCarriedOut(t *testing.T) {
	r := populated(t, 2, 60)
	r.steps(50) // some deployments are busy
	for _, replicas := range []int32{9, 0, 3} {
		image := fmt.Sprintf("other:%d", replicas)
		for _, d := range r.deployments() {
			write(r, d, func(d *appsv1.Deployment) {
				d.Spec.Replicas = new(replicas)
				d.Spec.Template.Spec.Containers[0].Image = image
			})
		}
		r.answers()
		r.checkSettled()
		r.steps(200)
		r.settleAll()
		for _, d := range r.deployments() {
			if *d.Spec.Replicas != replicas {
				t.Errorf("%s asks for %d pods, want %d", d.Name, *d.Spec.Replicas, replicas)
			}
		}
		for _, pod := range r.pods() {
			if got := pod.Spec.Containers[0].Image; got != image {
				t.Errorf("%s runs %s, want %s", pod.Name, got, image)
			}
		}
	}
}

func TestDeletedPodsAreReplacedAndDependentsOfDeletedDeploymentsDeleted(t *testing.T) {
	r := populated(t, 4, 60)
	client := kubernetes.NewForConfigOrDie(r.server.Config())
	gone := make(map[string]bool)
	for i, pod := range r.pods() {
		gone[pod.Name] = true
		if i%2 == 0 {
			r.drop(pod)
			continue
		} // gracefully: the kubelet has to finish the deletion
		if err := client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.Touch(pod.Namespace)
	}
	r.answers()
	for _, pod := range r.pods() {
		if gone[pod.Name] {
			t.Errorf("%s still exists", pod.Name)
		}
	}
	if pods := len(r.pods()); pods != 60 {
		t.Errorf("%d pods, want 60", pods)
	}
	for _, d := range r.deployments() {
		r.drop(d)
	}
	r.answers()
	if sets, pods := len(all(r, new(appsv1.ReplicaSet))), len(r.pods()); sets != 0 || pods != 0 {
		t.Errorf("%d replica sets and %d pods are left", sets, pods)
	}
	r.steps(100)
}

// TestOtherClientsWriteWhileTheFleetRuns calls Touch from another goroutine than the fleet's.
func TestOtherClientsWriteWhileTheFleetRuns(t *testing.T) {
	r := populated(t, 3, 20)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, 0) }()
	for _, pod := range r.pods() {
		r.drop(pod)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	r.answers()
	r.checkSettled()
}

func TestDeploymentOfAnotherClientGetsPods(t *testing.T) {
	r := populated(t, 6, 20)
	app := map[string]string{"app": "hello"}
	hello := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", Labels: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: app},
		},
	}
	hello.Spec.Template.Labels = app
	hello.Spec.Template.Spec.Containers = []corev1.Container{{Name: "hello", Image: "hello"}}
	if _, err := r.server.Create(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	r.Touch("default")
	r.answers()
	r.checkSettled()
	if pods, err := list(r.Fleet, new(corev1.Pod), "default"); err != nil || len(pods) != 3 {
		t.Errorf("it has %d pods, want 3: %v", len(pods), err)
	}
}

// TestAnyWriteOfOtherClients makes random writes between the steps, most of them without Touch.
func TestAnyWriteOfOtherClients(t *testing.T) {
	labelled := 0
	for seed := range uint64(4) {
		r := populated(t, seed, 60)
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 300 {
			r.steps(rng.IntN(4))
			r.interfere(rng)
			if rng.IntN(3) > 0 {
				r.takeTouched()
			}
		}
		r.settleAll()
		for _, node := range all(r, new(corev1.Node)) {
			labelled += len(node.Labels["by"])
		}
		for _, config := range all(r, new(corev1.ConfigMap)) {
			labelled += len(config.Labels["by"])
		}
	}
	if labelled == 0 {
		t.Error("the fleet has undone the labels of other clients")
	}
}

// interfere deletes or labels an object.
func (r *rig) interfere(rng *rand.Rand) {
	var objects []Object
	for _, of := range []Object{
		new(corev1.Pod), new(corev1.Node), new(corev1.ConfigMap), new(appsv1.ReplicaSet),
		new(appsv1.Deployment),
	} {
		objects = append(objects, all(r, of)...)
	}
	obj, odds := objects[rng.IntN(len(objects))], 8
	switch obj.(type) {
	case *corev1.Pod, *appsv1.ReplicaSet:
		odds = 2
	}
	same := 0
	for _, other := range objects {
		if reflect.TypeOf(other) == reflect.TypeOf(obj) {
			same++
		}
	}
	if same > 2 && rng.IntN(odds) == 0 { // some of each type stay
		r.drop(obj)
		return
	}
	write(r, obj, func(obj Object) {
		obj.SetLabels(labels.Merge(obj.GetLabels(), labels.Set{"by": "test"}))
	})
}
