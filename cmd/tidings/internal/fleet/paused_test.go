package fleet

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// paused is a deployment of eight pods whose rollouts a test pauses.
type paused struct {
	*rig
	name types.NamespacedName
}

// withPaused runs a test with a deployment of the image first:1.
func withPaused(t *testing.T, test func(*paused)) {
	t.Helper()
	inCluster(t, 2, 60, func(r *rig) {
		r.run(0)
		d := r.deployments()[0]
		p := &paused{r, types.NamespacedName{Namespace: d.Namespace, Name: d.Name}}
		p.set(func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(8))
			d.Spec.Template.Spec.Containers[0].Image = "first:1"
		})
		p.pass(time.Minute)
		test(p)
	})
}

func (p *paused) parts() *parts {
	p.Helper()
	found, _ := p.rig.parts()
	return found[p.name]
}

// set changes the deployment as another client does.
func (p *paused) set(change func(*appsv1.Deployment)) {
	p.Helper()
	write(p.rig, p.parts().deployment, change)
}

func (p *paused) setImage(image string) {
	p.Helper()
	p.set(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
}

// images returns the numbers of pods by image.
func (p *paused) images() string {
	p.Helper()
	got := make(map[string]int)
	for _, pod := range p.parts().pods {
		got[pod.Spec.Containers[0].Image]++
	}
	return fmt.Sprint(got)
}

// check gives the controllers time, and checks which pods there are.
func (p *paused) check(what, images string, updated int32) {
	p.Helper()
	p.pass(time.Minute)
	now := p.parts()
	status := now.deployment.Status
	if got := p.images(); got != images || status.UpdatedReplicas != updated ||
		status.ReadyReplicas != int32(len(now.pods)) ||
		status.ObservedGeneration != now.deployment.Generation {
		p.Errorf("%s: %s, want %s; %+v", what, got, images, status)
	}
	got := condition(now.deployment, appsv1.DeploymentProgressing)
	if got != "Unknown DeploymentPaused" {
		p.Errorf("%s: it is %s", what, got)
	}
}

// resume resumes the rollout, and checks that it ends.
func (p *paused) resume(images string, revision int) {
	p.Helper()
	p.set(func(d *appsv1.Deployment) { d.Spec.Paused = false })
	p.pass(time.Minute)
	p.rolledOut(p.name, revision)
	if got := p.images(); got != images {
		p.Errorf("resumed: %s, want %s", got, images)
	}
}

func pause(d *appsv1.Deployment) { d.Spec.Paused = true }

func TestPausedDeploymentDoesNotRollOut(t *testing.T) {
	withPaused(t, func(p *paused) {
		p.set(pause)
		p.check("paused", "map[first:1:8]", 8)
		p.setImage("second:2")
		p.check("another image", "map[first:1:8]", 0)
		p.drop(p.parts().pods[0])
		p.check("a deleted pod", "map[first:1:8]", 0)
		for _, size := range []int32{10, 0, 8} {
			p.set(func(d *appsv1.Deployment) { d.Spec.Replicas = new(size) })
			want := "map[]"
			if size > 0 {
				want = fmt.Sprintf("map[first:1:%d]", size)
			}
			p.check("another size", want, 0)
		}
		p.resume("map[second:2:8]", 3)
	})
}

func TestPauseInTheMiddleOfARollout(t *testing.T) {
	withPaused(t, func(p *paused) {
		p.setImage("second:2")
		for i := 0; p.images() != "map[first:1:5 second:2:4]"; i++ { // the fourth starts
			if p.pass(startTime / 10); i > 100 {
				p.Fatal(p.images())
			}
		}
		p.set(pause)
		const moved = "map[first:1:5 second:2:3]"
		p.check("paused", moved, 3)
		for _, pod := range p.parts().pods {
			p.drop(pod)
		}
		p.check("all pods deleted", moved, 3)
		p.set(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(10)) })
		p.check("more pods", "map[first:1:5 second:2:5]", 5)
		p.set(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) })
		p.check("fewer pods", "map[first:1:4]", 0)
		p.setImage("third:3")
		p.check("another image", "map[first:1:4]", 0)
		p.resume("map[third:3:4]", 4)
	})
}

func TestDeploymentThatIsCreatedPausedHasNoPods(t *testing.T) {
	withPaused(t, func(p *paused) {
		d := p.parts().deployment.DeepCopy()
		d.Name, d.UID, d.ResourceVersion = "another", "", ""
		d.Spec.Paused, d.Status, d.Annotations = true, appsv1.DeploymentStatus{}, nil
		_, err := p.server.Create(p.Context(), d)
		p.fatal(err)
		p.name.Name = d.Name
		p.check("created paused", "map[]", 0)
		p.resume("map[first:1:8]", 1)
	})
}
