package fleet

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	r.Fleet = New(apisim.Options{Seed: seed + 1}.Start(t), Options{Seed: seed, Pods: pods, OnWrite: func(c Change) {
		r.changes = append(r.changes, fmt.Sprintf("%T %s %s", c.Object, c.Object.GetName(), c.Object.GetResourceVersion()))
	}})
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

// podsOf returns the pods of a deployment.
func (r *rig) podsOf(d *appsv1.Deployment) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, set := range all(r, new(appsv1.ReplicaSet)) {
		for _, pod := range r.pods() {
			if metav1.IsControlledBy(set, d) && metav1.IsControlledBy(pod, set) {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

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
	if _, err := r.server.Delete(r.t.Context(), resourceOf(obj), obj.GetNamespace(), obj.GetName()); err != nil {
		r.t.Fatal(err)
	}
	r.Touch(obj.GetNamespace())
}

// checkModel compares the model with the server.
func (r *rig) checkModel() {
	r.t.Helper()
	count := 0
	check := func(obj Object) {
		r.t.Helper()
		count++
		stored := obj
		if found, err := get(r.Fleet, &stored); err != nil || !found || stored.GetResourceVersion() != obj.GetResourceVersion() {
			r.t.Errorf("%T %s: the server has version %s, the model %s: %v", obj, obj.GetName(),
				stored.GetResourceVersion(), obj.GetResourceVersion(), err)
		}
	}
	for _, node := range r.nodes {
		check(node)
	}
	for _, a := range r.apps {
		check(a.deployment)
		for _, set := range []*appsv1.ReplicaSet{a.set, a.previous} {
			if set != nil {
				check(set)
			}
		}
		for _, pod := range a.pods {
			check(pod)
		}
	}
	served := len(all(r, new(corev1.Node))) + len(r.deployments()) + len(all(r, new(appsv1.ReplicaSet))) + len(r.pods())
	if count != served {
		r.t.Errorf("the model has %d objects, the server %d", count, served)
	}
}

func TestSeedDecidesTheFleet(t *testing.T) {
	changes := func(seed uint64) string {
		r := populated(t, seed, 100)
		r.steps(500)
		return fmt.Sprint(r.changes)
	}
	once := changes(7)
	if once != changes(7) {
		t.Error("two fleets of one seed differ after 500 steps")
	}
	if once == changes(8) {
		t.Error("the fleets of two seeds are the same")
	}
}

func TestEveryStepMakesOneWriteOfTheModel(t *testing.T) {
	r := populated(t, 1, 200)
	r.checkModel()
	for _, pod := range r.pods() {
		if pod.Status.StartTime.Time.Before(began) || pod.Status.Conditions[0].LastTransitionTime.Time.Before(began) {
			t.Errorf("%s is older than the fleet", pod.Name)
		}
	}
	r.steps(2000)
	r.checkModel()
	if len(r.changes) < 1980 || len(r.changes) > 2000 { // a setting may change to itself
		t.Errorf("2,000 steps made %d changes", len(r.changes))
	}
	if pods := len(r.pods()); pods < 170 || pods > 230 {
		t.Errorf("200 pods became %d", pods)
	}
	for _, pods := range []int{-1, 1, 2} {
		small := populated(t, 5, pods)
		small.steps(300)
		small.checkModel()
	}
}

func TestScalingAndImagesOfOtherClientsAreCarriedOut(t *testing.T) {
	r := populated(t, 2, 60)
	r.steps(50) // some applications are busy
	for _, replicas := range []int32{9, 0, 3} {
		for _, d := range r.deployments() {
			write(r, d, func(d *appsv1.Deployment) {
				d.Spec.Replicas = new(replicas)
				d.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("other:%d", replicas)
			})
		}
		r.steps(1000)
		for _, d := range r.deployments() {
			pods := r.podsOf(d)
			if *d.Spec.Replicas != replicas || len(pods) > int(replicas) || len(pods) < int(replicas)-1 {
				t.Errorf("%s has %d pods, want %d", d.Name, len(pods), replicas)
			}
			for _, pod := range pods {
				if image := pod.Spec.Containers[0].Image; image != d.Spec.Template.Spec.Containers[0].Image {
					t.Errorf("%s runs %s", pod.Name, image)
				}
			}
		}
	}
	r.checkModel()
}

func TestWhatOtherClientsDeleteIsReplacedOrCollected(t *testing.T) {
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
	for _, node := range all(r, new(corev1.Node)) {
		r.drop(node)
	}
	for answered := true; answered; {
		var err error
		if answered, err = r.answer(r.now); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range r.pods() {
		if gone[pod.Name] {
			t.Errorf("%s still exists", pod.Name)
		}
	}
	if nodes, pods := len(all(r, new(corev1.Node))), len(r.pods()); nodes != 3 || pods != 60 {
		t.Errorf("%d nodes and %d pods, want 3 and 60", nodes, pods)
	}
	r.drop(all(r, new(appsv1.ReplicaSet))[0])
	r.steps(500)
	r.checkModel()
	for _, d := range r.deployments() {
		r.drop(d)
	}
	r.steps(600)
	if sets, pods := len(all(r, new(appsv1.ReplicaSet))), len(r.pods()); sets != 0 || pods != 0 {
		t.Errorf("%d replica sets and %d pods are left", sets, pods)
	}
}

func TestDeploymentOfAnotherClientGetsPods(t *testing.T) {
	r := populated(t, 6, 20)
	labels := map[string]string{"app": "hello"}
	hello := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", Labels: labels},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	hello.Spec.Template.Labels = labels
	hello.Spec.Template.Spec.Containers = []corev1.Container{{Name: "hello", Image: "hello"}}
	if err := create(r.Fleet, &hello); err != nil {
		t.Fatal(err)
	}
	r.Touch("default")
	r.steps(100)
	if n := len(r.podsOf(hello)); n < 2 || n > 3 {
		t.Errorf("it has %d pods, want 3", n)
	}
	r.checkModel()
}

// TestAnyWriteOfOtherClients makes random writes between the steps, most of them without Touch.
func TestAnyWriteOfOtherClients(t *testing.T) {
	for seed := range uint64(4) {
		r := populated(t, seed, 60)
		rng := rand.New(rand.NewPCG(seed, 1))
		labels := 0
		for range 300 {
			r.steps(rng.IntN(4))
			r.interfere(rng)
			if rng.IntN(3) > 0 {
				r.takeTouched() // the conflict of the next write has to do
			}
		}
		for _, namespace := range r.namespaces {
			r.Touch(namespace)
		}
		r.Touch("")
		r.steps(800)
		r.checkModel()
		for _, config := range all(r, new(corev1.ConfigMap)) {
			labels += len(config.Labels) - 2
		}
		if labels == 0 {
			t.Errorf("seed %d: the fleet has undone the labels of other clients", seed)
		}
	}
}

func (r *rig) interfere(rng *rand.Rand) {
	label := func(obj Object) {
		write(r, obj, func(obj Object) { obj.SetLabels(withLabel(obj.GetLabels(), "by", "test")) })
	}
	pods, nodes, deployments := r.pods(), all(r, new(corev1.Node)), r.deployments()
	if len(pods) < 20 {
		return
	}
	pod, node := pods[rng.IntN(len(pods))], nodes[rng.IntN(len(nodes))]
	configs := all(r, new(corev1.ConfigMap))
	switch roll := rng.IntN(10); {
	case roll == 0 && len(deployments) > 2:
		r.drop(deployments[rng.IntN(len(deployments))])
	case roll == 1 && len(deployments) > 2:
		sets := all(r, new(appsv1.ReplicaSet))
		r.drop(sets[rng.IntN(len(sets))])
	case roll == 2 && len(nodes) > 1:
		r.drop(node)
	case roll == 3 && len(configs) > 2:
		r.drop(configs[rng.IntN(len(configs))])
	case roll < 6:
		r.drop(pod)
	case roll < 7:
		label(node)
	case roll < 8:
		label(configs[rng.IntN(len(configs))])
	default:
		label(pod)
	}
}
