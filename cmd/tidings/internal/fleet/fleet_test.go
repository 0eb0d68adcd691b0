package fleet

import (
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

// TestSeedDecides: two fleets of one seed have the same objects and the same acts of users.
func TestSeedDecides(t *testing.T) {
	decided := func(seed uint64) (text string) {
		inCluster(t, seed, 100, func(r *rig) {
			for _, obj := range r.pods() {
				text += fmt.Sprintln(obj.Namespace, obj.Name, hashOf(obj.Spec), obj.Status.PodIP)
			}
			for _, obj := range r.deployments() {
				text += fmt.Sprintln(obj.Namespace, obj.Name, hashOf(obj.Spec))
			}
			u := newUsers(r.fleet, nil, 1)
			for range 300 {
				text += fmt.Sprintln(u.next())
			}
		})
		return text
	}
	once := decided(7)
	if once != decided(7) {
		t.Error("two fleets of one seed differ")
	}
	if once == decided(8) {
		t.Error("the fleets of two seeds are the same")
	}
}

func TestPopulatedClusterIsAtRest(t *testing.T) {
	for _, pods := range []int{-1, 1, 2, 200} {
		inCluster(t, 1, pods, func(r *rig) {
			began := time.Now()
			for _, pod := range r.pods() {
				if pod.Status.StartTime.Before(&metav1.Time{Time: began.Truncate(time.Second)}) {
					r.Errorf("%s is older than the fleet", pod.Name)
				}
			}
			r.run(0)
			r.settle()
			if r.writes > 0 {
				r.Errorf("%d pods: the controllers have made %d writes", pods, r.writes)
			}
		})
	}
}

func TestUsersAndControllersTogetherKeepTheRate(t *testing.T) {
	inCluster(t, 1, 200, func(r *rig) {
		r.run(20)
		r.pass(100 * time.Second)
		// Users have not yet waited for the last writes of the controllers.
		if r.writes < 1800 || r.writes > 20*(100+mostCounted)+200 {
			r.Errorf("%d writes in 100 seconds, want 20 a second", r.writes)
		}
		if pods := len(r.pods()); pods < 160 || pods > 240 {
			r.Errorf("200 pods became %d", pods)
		}
		releases := 0
		for _, d := range r.deployments() {
			releases += revision(d) - 1
			if !isSigned(d) {
				r.Errorf("%s counts as changed by another client", d.Name)
			}
		}
		if releases < 2 {
			r.Errorf("%d releases", releases)
		}
		r.run(0)
		r.settle()
	})
}

func TestScalingAndImagesOfOtherClientsAreCarriedOut(t *testing.T) {
	inCluster(t, 2, 60, func(r *rig) {
		for _, size := range []int32{9, 0, 3} {
			r.run(20)
			r.pass(10 * time.Second) // some deployments are busy
			r.run(0)
			image := fmt.Sprintf("other:%d", size)
			for _, d := range r.deployments() {
				write(r, d, func(d *appsv1.Deployment) {
					d.Spec.Replicas = new(size)
					d.Spec.Template.Spec.Containers[0].Image = image
				})
			}
			r.settle()
			r.run(20)
			r.pass(10 * time.Second)
			r.run(0)
			r.settle()
			for _, d := range r.deployments() {
				if *d.Spec.Replicas != size {
					r.Errorf("%s asks for %d pods, want %d", d.Name, *d.Spec.Replicas, size)
				}
			}
			for _, pod := range r.pods() {
				if got := pod.Spec.Containers[0].Image; got != image {
					r.Errorf("%s runs %s, want %s", pod.Name, got, image)
				}
			}
		}
	})
}

func TestDeletedPodsAreReplacedAndDependentsOfDeletedDeploymentsDeleted(t *testing.T) {
	inCluster(t, 4, 60, func(r *rig) {
		r.run(0)
		client := kubernetes.NewForConfigOrDie(r.server.Config())
		gone := make(map[string]bool)
		for i, pod := range r.pods() {
			gone[pod.Name] = true
			if i%2 == 0 {
				r.drop(pod)
				continue
			} // gracefully: the kubelet has to finish the deletion
			r.fatal(client.CoreV1().Pods(pod.Namespace).Delete(r.Context(), pod.Name,
				metav1.DeleteOptions{}))
		}
		r.settle()
		for _, pod := range r.pods() {
			if gone[pod.Name] {
				r.Errorf("%s still exists", pod.Name)
			}
		}
		if pods := len(r.pods()); pods != 60 {
			r.Errorf("%d pods, want 60", pods)
		}
		for _, d := range r.deployments() {
			r.drop(d)
		}
		r.settle()
		if sets, pods := len(all(r, new(appsv1.ReplicaSet))), len(r.pods()); sets+pods != 0 {
			r.Errorf("%d replica sets and %d pods are left", sets, pods)
		}
		r.run(10)
		r.pass(time.Minute) // users do nothing with deployments that are gone
	})
}

// hello is a deployment of another client, without the fields that are optional.
func hello() *appsv1.Deployment {
	app := map[string]string{"app": "hello"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", Labels: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: app},
		},
	}
	d.Spec.Template.Labels = app
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "hello", Image: "hello"}}
	return d
}

func TestDeploymentOfAnotherClientGetsPods(t *testing.T) {
	inCluster(t, 6, 20, func(r *rig) {
		r.run(0)
		_, err := r.server.Create(r.Context(), hello())
		r.fatal(err)
		r.settle()
		if pods := len(r.pods()); pods != 23 {
			r.Errorf("there are %d pods, want 3 more than 20", pods)
		}
	})
}

func TestNodesThatTakeNoPodsGetNone(t *testing.T) {
	inCluster(t, 6, 20, func(r *rig) {
		cordon := func(yes bool) func(*corev1.Node) {
			return func(node *corev1.Node) { node.Spec.Unschedulable = yes }
		}
		r.run(0)
		nodes := all(r, new(corev1.Node))
		for _, node := range nodes {
			write(r, node, cordon(true))
		}
		r.pass(time.Second) // the nodes and the pods come by different watches
		_, err := r.server.Create(r.Context(), hello())
		r.fatal(err)
		r.pass(time.Minute)
		for _, pod := range r.pods() {
			if pod.Namespace == "default" && pod.Spec.NodeName != "" {
				r.Errorf("%s is on %s", pod.Name, pod.Spec.NodeName)
			}
		}
		last := all(r, new(corev1.Node))[0]
		write(r, last, cordon(false))
		r.settle()
		for _, pod := range r.pods() {
			if pod.Namespace == "default" && pod.Spec.NodeName != last.Name {
				r.Errorf("%s is on %q, want %s", pod.Name, pod.Spec.NodeName, last.Name)
			}
		}
	})
}

// TestAnyWriteOfOtherClients makes random writes beside those of users.
func TestAnyWriteOfOtherClients(t *testing.T) {
	labelled := 0
	for seed := range uint64(2) {
		inCluster(t, seed, 60, func(r *rig) {
			rng := rand.New(rand.NewPCG(seed, 1))
			r.run(10)
			for range 100 {
				r.pass(time.Duration(rng.IntN(300)) * time.Millisecond)
				r.interfere(rng)
			}
			r.run(0)
			r.settle()
			for _, node := range all(r, new(corev1.Node)) {
				labelled += len(node.Labels["by"])
			}
			for _, config := range all(r, new(corev1.ConfigMap)) {
				labelled += len(config.Labels["by"])
			}
		})
	}
	if labelled == 0 {
		t.Error("the fleet has undone the labels of other clients")
	}
}

// interfere deletes or labels an object.
func (r *rig) interfere(rng *rand.Rand) {
	r.Helper()
	var objects []object
	for _, list := range []func() []object{
		objectsOf(r, new(corev1.Pod)), objectsOf(r, new(corev1.Node)),
		objectsOf(r, new(corev1.ConfigMap)), objectsOf(r, new(appsv1.ReplicaSet)),
		objectsOf(r, new(appsv1.Deployment)),
	} {
		objects = append(objects, list()...)
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
	write(r, obj, func(obj object) {
		obj.SetLabels(labels.Merge(obj.GetLabels(), labels.Set{"by": "test"}))
	})
}

func objectsOf[T object](r *rig, of T) func() []object {
	return func() (objects []object) {
		for _, obj := range all(r, of) {
			objects = append(objects, obj)
		}
		return objects
	}
}

// TestControllersSurviveFaults: watches are late and expire, writes are in conflict or their
// answers are lost, and the server restarts.
func TestControllersSurviveFaults(t *testing.T) {
	inCluster(t, 9, 60, func(r *rig) {
		rng := rand.New(rand.NewPCG(9, 1))
		r.run(10)
		faults := []*apisim.Injection{
			r.server.Inject(apisim.Match{Verb: "watch"}, apisim.Stall(apisim.EachFrame,
				300*time.Millisecond)),
			r.server.Inject(apisim.Match{Verb: "watch", Probability: 0.3},
				apisim.FailLater(7*time.Second, 410)),
			r.server.Inject(apisim.Match{Verb: "update", Probability: 0.2}, apisim.Refuse(409, 0)),
			r.server.Inject(apisim.Match{Verb: "create", Resource: "pods", Probability: 0.2},
				apisim.RefuseApplied(500)),
			r.server.Inject(apisim.Match{Verb: "create", Resource: "replicasets.apps",
				Probability: 0.5}, apisim.CutBefore(0)),
			r.server.Inject(apisim.Match{Verb: "delete", Probability: 0.2}, apisim.CutBefore(0)),
		}
		for i := range 100 {
			r.pass(time.Duration(rng.IntN(1000)) * time.Millisecond)
			r.interfere(rng)
			if i%30 == 15 {
				r.server.Restart(apisim.RestartOptions{Down: 3 * time.Second})
			}
		}
		for _, fault := range faults {
			fault.Lift()
		}
		r.run(0)
		r.pass(time.Minute)
		r.settle()
	})
}

func TestClusterGoesOnAfterARestoredBackup(t *testing.T) {
	inCluster(t, 5, 60, func(r *rig) {
		r.run(20)
		r.pass(30 * time.Second)
		backup := r.server.Snapshot()
		r.pass(30 * time.Second)
		r.run(0)
		r.server.SetAvailable(false)
		r.server.Rewind(backup)
		r.pass(11 * time.Second)
		r.server.SetAvailable(true)
		r.settle()
		for _, d := range r.deployments() {
			if !isSigned(d) {
				r.Errorf("%s counts as changed by another client", d.Name)
			}
		}
	})
}
