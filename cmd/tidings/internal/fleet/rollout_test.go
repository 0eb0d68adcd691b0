package fleet

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// condition returns the status and the reason of a deployment's condition.
func condition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) string {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return "none"
}

// rolledOut checks that a deployment is available, at a revision that its replica set has, too.
func (r *rig) rolledOut(namespace, name string, want int) *app {
	r.t.Helper()
	a, err := r.app(types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil || a == nil {
		r.t.Fatalf("%s/%s is missing: %v", namespace, name, err)
	}
	a.chooseSet()
	d := a.deployment
	if a.set == nil || revision(a.set) != want || revision(d) != want ||
		d.Status.ObservedGeneration != d.Generation ||
		condition(d, appsv1.DeploymentAvailable) != "True MinimumReplicasAvailable" ||
		condition(d, appsv1.DeploymentProgressing) != "True NewReplicaSetAvailable" {
		r.t.Errorf("%s is not rolled out at revision %d: %+v\nits replica set is %+v", name, want, d, a.set)
	}
	return a
}

func TestTemplatesOfOtherClientsGetRevisions(t *testing.T) {
	r := populated(t, 2, 20)
	d := r.deployments()[0]
	current := func() *app { return must(r.app(types.NamespacedName{Namespace: d.Namespace, Name: d.Name})) }
	first := r.rolledOut(d.Namespace, d.Name, 1).set
	setTemplate := func(want int, change func(*appsv1.Deployment)) *app {
		t.Helper()
		write(r, current().deployment, change)
		r.answers()
		return r.rolledOut(d.Namespace, d.Name, want)
	}
	setTemplate(2, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "other:2"
		d.Annotations[causeAnnotation] = "a test"
	})
	// The template of the first revision returns, as kubectl rollout undo does.
	a := setTemplate(3, func(d *appsv1.Deployment) {
		first.Spec.Template.DeepCopyInto(&d.Spec.Template)
		delete(d.Spec.Template.Labels, hashLabel)
	})
	if a.set.UID != first.UID || len(a.old) != 1 || a.old[0].Annotations[causeAnnotation] != "a test" {
		t.Errorf("the template has the replica set %s of %d, want %s of 2", a.set.Name, 1+len(a.old), first.Name)
	}
	for i := 4; i < 8; i++ { // kubectl rollout restart changes an annotation of the template only
		a = setTemplate(i, func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"restarted": fmt.Sprint(i)}
		})
	}
	if got := []int{revision(a.old[0]), revision(a.old[1])}; len(a.old) != 2 || got[0] != 5 || got[1] != 6 {
		t.Errorf("%d old replica sets, the oldest of the revisions %v, want 5 and 6", len(a.old), got)
	}
}

func TestUnavailableDeploymentsSaySo(t *testing.T) {
	r := populated(t, 2, 20)
	d := r.deployments()[0]
	pods := r.pods()
	for _, pod := range pods {
		if _, err := r.crash(pod, r.now); err != nil {
			t.Fatal(err)
		}
	}
	name := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	a := must(r.app(name))
	a.chooseSet()
	if wrote, err := r.reportStatus(a, r.now); !wrote || err != nil { // of the replica set
		t.Fatal(err)
	}
	a = must(r.app(name))
	a.chooseSet()
	if wrote, err := r.reportStatus(a, r.now); !wrote || err != nil {
		t.Fatal(err)
	}
	got := must(r.app(name)).deployment
	if condition(got, appsv1.DeploymentAvailable) != "False MinimumReplicasUnavailable" ||
		condition(got, appsv1.DeploymentProgressing) != "True NewReplicaSetAvailable" {
		t.Errorf("all pods crash: %+v", got.Status.Conditions)
	}
	r.settleAll()
	r.rolledOut(d.Namespace, d.Name, 1)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestOtherClientsDoNotWait writes to a deployment of a busy fleet that makes a step in a second.
func TestOtherClientsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := populated(t, 3, 60)
		r.steps(200) // deployments are busy
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx, 1) }()
		time.Sleep(1500 * time.Millisecond)
		d := r.deployments()[0]
		write(r, d, func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image = new(int32(9)), "other:9"
		})
		time.Sleep(2 * time.Second)
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		d = r.rolledOut(d.Namespace, d.Name, revision(d)+1).deployment
		if d.Status.ReadyReplicas != 9 || d.Status.Replicas != 9 || d.Status.UpdatedReplicas != 9 {
			t.Errorf("after two seconds: %+v", d.Status)
		}
	})
}

func TestFleetGoesOnAfterARestoredBackup(t *testing.T) {
	r := populated(t, 5, 60)
	r.steps(150)
	backup := r.server.Snapshot()
	r.steps(300)
	r.server.Rewind(backup)
	for _, d := range r.deployments() {
		if !r.isOwn(d) {
			t.Errorf("%s counts as written by another client", d.Name)
		}
	}
	r.TouchAll()
	r.answers()
	r.checkSettled()
}
