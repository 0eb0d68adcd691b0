package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/cmd/tidings/internal/fleet"
)

// busy is a fleet in a cluster where others write too.
type busy struct {
	t       *testing.T
	cluster *memory
	fleet   *fleet.Fleet
	now     time.Time
}

func newBusy(t *testing.T, seed uint64, pods int) *busy {
	t.Helper()
	cluster, f, _ := story(t, seed, pods, 0)
	return &busy{t, cluster, f, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (b *busy) steps(n int) {
	b.t.Helper()
	for i := range n {
		b.now = b.now.Add(100 * time.Millisecond)
		if err := b.fleet.Step(b.t.Context(), b.now); err != nil {
			b.t.Fatalf("step %d: %v", i, err)
		}
	}
}

// each returns the objects of a type, in the order of their names.
func each[T fleet.Object](m *memory) []T {
	var keys []string
	for key, obj := range m.objects {
		if _, ok := obj.(T); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var all []T
	for _, key := range keys {
		all = append(all, m.objects[key].(T))
	}
	return all
}

// change is a write of somebody else.
func change[T fleet.Object](b *busy, obj T, edit func(T)) T {
	b.t.Helper()
	next := obj.DeepCopyObject().(T)
	edit(next)
	stored, err := b.cluster.Update(context.Background(), next)
	if err != nil {
		b.t.Fatal(err)
	}
	return stored.(T)
}

func (b *busy) remove(obj fleet.Object) {
	b.t.Helper()
	if _, err := b.cluster.Delete(context.Background(), obj); err != nil {
		b.t.Fatal(err)
	}
}

// podsOf returns the pods of a deployment that nobody is deleting.
func (b *busy) podsOf(d *appsv1.Deployment) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range each[*corev1.Pod](b.cluster) {
		for _, set := range each[*appsv1.ReplicaSet](b.cluster) {
			if pod.OwnerReferences[0].UID == set.UID && set.OwnerReferences[0].UID == d.UID && pod.DeletionTimestamp == nil {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

func TestWhatOthersChangeStays(t *testing.T) {
	b := newBusy(t, 1, 60)
	for _, obj := range each[*corev1.ConfigMap](b.cluster) {
		change(b, obj, func(c *corev1.ConfigMap) { c.Labels = map[string]string{"by": "somebody"} })
	}
	for _, obj := range each[*appsv1.Deployment](b.cluster) {
		change(b, obj, func(d *appsv1.Deployment) { d.Annotations["by"] = "somebody" })
	}
	b.steps(2000)
	for _, obj := range each[*corev1.ConfigMap](b.cluster) {
		if obj.Labels["by"] != "somebody" {
			t.Errorf("the fleet has undone the label of %s", obj.Name)
		}
	}
	for _, obj := range each[*appsv1.Deployment](b.cluster) {
		if obj.Annotations["by"] != "somebody" {
			t.Errorf("the fleet has undone the annotation of %s", obj.Name)
		}
	}
}

func TestScalingByOthersIsCarriedOut(t *testing.T) {
	b := newBusy(t, 2, 60)
	b.steps(50) // stories are under way
	for _, replicas := range []int32{9, 0, 3} {
		for _, d := range each[*appsv1.Deployment](b.cluster) {
			change(b, d, func(d *appsv1.Deployment) { d.Spec.Replicas = new(replicas) })
		}
		b.steps(4000)
		for _, d := range each[*appsv1.Deployment](b.cluster) {
			if *d.Spec.Replicas != replicas || d.Status.ReadyReplicas > replicas || len(b.podsOf(d)) > int(replicas) || replicas > 0 && len(b.podsOf(d)) < int(replicas)-1 {
				t.Errorf("%s is to have %d pods: it wants %d, says %d, and has %d", d.Name, replicas, *d.Spec.Replicas, d.Status.ReadyReplicas, len(b.podsOf(d)))
			}
		}
	}
}

func TestAnImageSetByOthersIsRolledOut(t *testing.T) {
	b := newBusy(t, 3, 40)
	d := each[*appsv1.Deployment](b.cluster)[0]
	change(b, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/other:9" })
	b.steps(3000)
	pods := b.podsOf(d)
	for _, pod := range pods {
		if image := pod.Spec.Containers[0].Image; image != "registry.example/other:9" {
			t.Errorf("%s runs %s", pod.Name, image)
		}
	}
	if len(pods) == 0 {
		t.Error("there are no pods")
	}
}

func TestPodsThatOthersDeleteAreReplaced(t *testing.T) {
	b := newBusy(t, 4, 60)
	gone := make(map[string]bool)
	for i, pod := range each[*corev1.Pod](b.cluster) {
		gone[pod.Name] = true
		if i%2 == 0 {
			b.remove(pod)
		} else { // gracefully: the kubelet is to finish it
			change(b, pod, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(b.now)) })
		}
	}
	b.steps(1500)
	pods := each[*corev1.Pod](b.cluster)
	for _, pod := range pods {
		if gone[pod.Name] {
			t.Errorf("%s is still there", pod.Name)
		}
	}
	if len(pods) < 50 || len(pods) > 70 {
		t.Errorf("60 pods became %d", len(pods))
	}
}

func TestWhatADeletedDeploymentLeavesIsCollected(t *testing.T) {
	b := newBusy(t, 5, 60)
	b.steps(50)
	for _, d := range each[*appsv1.Deployment](b.cluster) {
		b.remove(d)
	}
	b.steps(600)
	if sets, pods := len(each[*appsv1.ReplicaSet](b.cluster)), len(each[*corev1.Pod](b.cluster)); sets != 0 || pods != 0 {
		t.Errorf("%d replica sets and %d pods are left", sets, pods)
	}
	b.steps(100) // heartbeats are left
}

func TestADeploymentOfOthersGetsPods(t *testing.T) {
	b := newBusy(t, 6, 20)
	labels := map[string]string{"app": "hello"}
	hello := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "hello", Image: "hello"}}},
		}},
	}
	stored, err := b.cluster.Create(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	b.steps(400)
	if n := len(b.podsOf(stored.(*appsv1.Deployment))); n < 2 || n > 3 {
		t.Errorf("it has %d pods, want 3", n)
	}
}

func TestAFleetWithoutStepsAnswers(t *testing.T) {
	b := newBusy(t, 8, 30)
	if answered, err := b.fleet.Answer(t.Context(), b.now); answered || err != nil {
		t.Fatalf("answered %v, %v, before anybody has done anything", answered, err)
	}
	b.remove(each[*corev1.Pod](b.cluster)[0])
	b.remove(each[*appsv1.ReplicaSet](b.cluster)[0])
	for answered := true; answered; {
		var err error
		if answered, err = b.fleet.Answer(t.Context(), b.now); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(each[*corev1.Pod](b.cluster)); n != 30 {
		t.Errorf("%d pods, want 30", n)
	}
	for _, d := range each[*appsv1.Deployment](b.cluster) {
		if n := len(b.podsOf(d)); n != int(*d.Spec.Replicas) {
			t.Errorf("%s has %d of %d pods", d.Name, n, *d.Spec.Replicas)
		}
	}
}

func TestNodesRegisterAgain(t *testing.T) {
	b := newBusy(t, 7, 60)
	for _, node := range each[*corev1.Node](b.cluster) {
		b.remove(node)
	}
	b.steps(300)
	if n := len(each[*corev1.Node](b.cluster)); n != 3 {
		t.Errorf("%d nodes, want 3", n)
	}
}

// TestTheFleetBearsWhateverOthersDo has somebody make a write at random after every few
// steps.
func TestTheFleetBearsWhateverOthersDo(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			b := newBusy(t, seed, 80)
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 1500 {
				b.steps(rng.IntN(4))
				b.interfere(rng)
			}
			b.steps(2000)
			for obj := range b.fleet.Objects() {
				stored, ok := b.cluster.objects[keyOf(obj)]
				if !ok && (isOf[*corev1.ConfigMap](obj) || isOf[*corev1.Service](obj) || isOf[*unstructured.Unstructured](obj)) {
					continue // nobody has looked since
				}
				if !ok {
					t.Errorf("%s is in the model and not in the cluster", keyOf(obj))
				} else if stored.GetUID() != obj.GetUID() {
					t.Errorf("%s is another object in the model", keyOf(obj))
				}
			}
		})
	}
}

func isOf[T fleet.Object](obj fleet.Object) bool {
	_, ok := obj.(T)
	return ok
}

// interfere writes to one object at random, but for definitions and namespaces.
func (b *busy) interfere(rng *rand.Rand) {
	var keys []string
	for key, obj := range b.cluster.objects {
		if obj.GetNamespace() != "" || isOf[*corev1.Node](obj) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	obj := b.cluster.objects[keys[rng.IntN(len(keys))]]
	d, isDeployment := obj.(*appsv1.Deployment)
	switch roll := rng.IntN(10); {
	case len(keys) > 30 && (roll < 2 && !isDeployment || roll < 1):
		b.remove(obj)
	case isDeployment && roll < 6:
		change(b, d, func(d *appsv1.Deployment) { d.Spec.Replicas = new(rng.Int32N(12)) })
	case isDeployment && roll < 8:
		change(b, d, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("other:%d", rng.IntN(99))
		})
	default:
		change(b, obj, func(obj fleet.Object) { obj.SetLabels(map[string]string{"by": "somebody"}) })
	}
}

// TestHearFromAnyGoroutine is for the race detector. There is news in some steps, and none
// in others.
func TestHearFromAnyGoroutine(t *testing.T) {
	b := newBusy(t, 6, 20)
	d := each[*appsv1.Deployment](b.cluster)[0]
	done := make(chan struct{})
	var hearing sync.WaitGroup
	hearing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				b.fleet.Hear(d, false)
				for range 100 {
					runtime.Gosched()
				}
			}
		}
	})
	b.steps(2000)
	close(done)
	hearing.Wait()
}
