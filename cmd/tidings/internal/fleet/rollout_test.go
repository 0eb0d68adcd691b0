package fleet

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/apisim"
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
func (r *rig) rolledOut(name types.NamespacedName, want int) *parts {
	r.Helper()
	found, _ := r.parts()
	p := found[name]
	if p == nil || p.set == nil || revision(p.set) != want || revision(p.deployment) != want ||
		p.deployment.Status.ObservedGeneration != p.deployment.Generation ||
		condition(p.deployment, appsv1.DeploymentAvailable) != "True MinimumReplicasAvailable" ||
		condition(p.deployment, appsv1.DeploymentProgressing) != "True NewReplicaSetAvailable" {
		r.Fatalf("%s is not rolled out at revision %d: %+v", name, want, p)
	}
	return p
}

func nameOf(d *appsv1.Deployment) types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
}

func TestTemplatesOfOtherClientsGetRevisions(t *testing.T) {
	inCluster(t, 2, 20, func(r *rig) {
		r.run(0)
		name := nameOf(r.deployments()[0])
		first := r.rolledOut(name, 1).set
		setTemplate := func(want int, change func(*appsv1.Deployment)) *parts {
			r.Helper()
			found, _ := r.parts()
			write(r, found[name].deployment, change)
			r.pass(time.Minute)
			return r.rolledOut(name, want)
		}
		setTemplate(2, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = "other:2"
			d.Annotations[causeAnnotation] = "a test"
		})
		// The template of the first revision returns, as kubectl rollout undo does.
		p := setTemplate(3, func(d *appsv1.Deployment) {
			first.Spec.Template.DeepCopyInto(&d.Spec.Template)
			delete(d.Spec.Template.Labels, hashLabel)
		})
		if p.set.UID != first.UID || len(p.old) != 1 ||
			p.old[0].Annotations[causeAnnotation] != "a test" {
			r.Errorf("the template has the replica set %s of %d, want %s of 2", p.set.Name,
				1+len(p.old), first.Name)
		}
		for i := 4; i < 8; i++ { // kubectl rollout restart changes an annotation of the template
			p = setTemplate(i, func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{"restarted": fmt.Sprint(i)}
			})
		}
		if len(p.old) != 2 || revision(p.old[0]) != 5 || revision(p.old[1]) != 6 {
			r.Errorf("there are %d old replica sets, want those of the revisions 5 and 6",
				len(p.old))
		}
	})
}

// TestRolloutMovesOnePodAfterTheOther looks at each state of a rollout of eight pods.
func TestRolloutMovesOnePodAfterTheOther(t *testing.T) {
	withPaused(t, func(p *paused) {
		p.setImage("second:2")
		states := 0
		for last := ""; last != "map[second:2:8]"; p.pass(startTime / 10) {
			now := p.parts()
			ready, starting := 0, 0
			for _, pod := range now.pods {
				switch {
				case isReady(pod):
					ready++
				case pod.DeletionTimestamp == nil:
					starting++
				}
			}
			if ready < 8 || starting > 1 {
				p.Fatalf("%d pods are ready and %d start, want 8 and at most 1", ready, starting)
			}
			if images := p.images(); images != last {
				last, states = images, states+1
			}
			if states > 20 {
				p.Fatal(last)
			}
		}
		if states < 8 {
			p.Errorf("the rollout of 8 pods has %d states", states)
		}
	})
}

func TestUnavailableDeploymentsSaySo(t *testing.T) {
	inCluster(t, 2, 20, func(r *rig) {
		r.run(0)
		name := nameOf(r.deployments()[0])
		for _, pod := range r.pods() {
			crash(pod, time.Now())
			_, err := apisim.Update(r.Context(), r.server, pod)
			r.fatal(err)
		}
		r.pass(startTime / 2)
		found, _ := r.parts()
		got := found[name].deployment
		if condition(got, appsv1.DeploymentAvailable) != "False MinimumReplicasUnavailable" ||
			condition(got, appsv1.DeploymentProgressing) != "True NewReplicaSetAvailable" {
			r.Errorf("all pods crash: %+v", got.Status.Conditions)
		}
		r.settle()
		r.rolledOut(name, 1)
	})
}

// TestOtherClientsDoNotWait writes to a deployment of a busy fleet whose users write once a
// second.
func TestOtherClientsDoNotWait(t *testing.T) {
	inCluster(t, 3, 60, func(r *rig) {
		r.run(50)
		r.pass(10 * time.Second)
		r.run(1)
		d := r.deployments()[0]
		write(r, d, func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image = new(int32(9)), "other:9"
		})
		r.pass(2 * time.Second)
		found, _ := r.parts()
		status := found[nameOf(d)].deployment.Status
		if status.ReadyReplicas != 9 || status.Replicas != 9 || status.UpdatedReplicas != 9 {
			r.Errorf("after two seconds: %+v", status)
		}
	})
}
