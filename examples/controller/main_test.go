package main

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
)

func (w *world) editDeployment(name string, change func(*appsv1.Deployment)) {
	w.Helper()
	edit(w, name, apisim.Get[*appsv1.Deployment], apisim.Update[*appsv1.Deployment], change)
}

func (w *world) editSettings(value string) {
	w.Helper()
	edit(w, "settings", apisim.Get[*corev1.ConfigMap], apisim.Update[*corev1.ConfigMap],
		func(c *corev1.ConfigMap) { c.Data["value"] = value })
}

func (w *world) create(d *appsv1.Deployment) {
	w.Helper()
	_, err := apisim.Create(w.Context(), w.server, d)
	w.fatal(err)
}

func (w *world) delete(name string) {
	w.Helper()
	_, err := w.server.Delete(w.Context(), appsv1.SchemeGroupVersion.WithResource("deployments"),
		"default", name)
	w.fatal(err)
}

// onlySet returns the ReplicaSet that there is.
func (w *world) onlySet() *appsv1.ReplicaSet {
	w.Helper()
	sets := list[*appsv1.ReplicaSet](w, "replicasets")
	if len(sets) != 1 {
		w.Fatalf("there are %d ReplicaSets", len(sets))
	}
	return sets[0]
}

func TestRollout(t *testing.T) {
	inWorld(t, func(w *world) {
		program := w.start("rollout")
		w.create(deployment("web", 3))
		w.pass(5 * time.Second)
		if sets := list[*appsv1.ReplicaSet](w, "replicasets"); len(sets) > 0 {
			t.Errorf("%d ReplicaSets before the ConfigMap", len(sets))
		}
		events, _, err := w.server.List(t.Context(),
			eventsv1.SchemeGroupVersion.WithResource("events"), "default")
		if err != nil || len(events) != 1 ||
			events[0].(*eventsv1.Event).Reason != "ConfigMapMissing" {
			t.Errorf("events: %v, %v", events, err)
		}
		_, err = apisim.Create(t.Context(), w.server, settings("one"))
		w.fatal(err)
		w.pass(5 * time.Second)
		w.check(1)
		first := w.onlySet()

		w.editDeployment("web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
		w.pass(5 * time.Second)
		w.check(1)
		if w.onlySet().UID != first.UID {
			t.Error("another number of replicas has led to another ReplicaSet")
		}
		w.editSettings("two")
		w.pass(5 * time.Second)
		w.check(1)
		if w.onlySet().UID == first.UID {
			t.Error("another ConfigMap has not led to another ReplicaSet")
		}
		program.checkProbes(t)
		w.server.ForgetRequests()
		w.pass(time.Minute)
		w.server.ExpectRequests(t, apisim.Match{Verb: "patch"}, 0)
		w.delete("web")
		w.pass(5 * time.Second)
		w.check(0)
		w.fatal(program.stop())
	})
}

// TestRolloutUnderFaults: watches are late and expire, writes are in conflict, and the leader
// loses its Lease. Afterwards the world is as the Deployments ask.
func TestRolloutUnderFaults(t *testing.T) {
	inWorld(t, func(w *world) {
		_, err := apisim.Create(t.Context(), w.server, settings("one"))
		w.fatal(err)
		first := w.start("first")
		w.pass(2 * time.Second)
		second := w.start("second")
		faults := []*apisim.Injection{
			w.server.Inject(apisim.Match{Verb: "watch"}, apisim.Stall(apisim.EachFrame,
				500*time.Millisecond)),
			w.server.Inject(apisim.Match{Verb: "watch", Probability: 0.3},
				apisim.FailLater(7*time.Second, 410)),
			w.server.Inject(apisim.Match{Verb: "patch", Probability: 0.2}, apisim.Refuse(409, 0)),
			w.server.Inject(apisim.Match{Verb: "update", Resource: "deployments.apps/status",
				Probability: 0.2}, apisim.Refuse(409, 0)),
			w.server.Inject(apisim.Match{Verb: "patch", Probability: 0.1},
				apisim.RefuseApplied(500)),
		}
		for i := range 30 {
			name := fmt.Sprintf("web-%d", i%10)
			switch i / 10 {
			case 0:
				w.create(deployment(name, 2))
			case 1:
				w.editDeployment(name, func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.Containers[0].Image = "registry.example/main:2"
				})
			case 2:
				if i%2 == 0 {
					w.delete(name)
				} else {
					w.editSettings(name)
				}
			}
			if i == 15 {
				faults = append(faults, w.server.Inject(apisim.Match{
					UserAgent: "first", Resource: "leases.coordination.k8s.io", Verb: "update",
				}, apisim.Refuse(503, 0)))
			}
			w.pass(3 * time.Second)
		}
		for _, fault := range faults {
			fault.Lift()
		}
		w.pass(2 * time.Minute)
		w.check(5)
		lease, err := apisim.Get[*coordinationv1.Lease](t.Context(), w.server, "default", name)
		w.fatal(err)
		if n := *lease.Spec.LeaseTransitions; n != 1 {
			t.Errorf("the Lease had %d transitions, want that from the first replica to the second",
				n)
		}
		for _, program := range []*replica{first, second} {
			program.checkProbes(t)
		}
		w.fatal(first.stop())
		w.fatal(second.stop())
	})
}

// TestADeploymentThatIsReplaced: the second one has objects of its own.
func TestADeploymentThatIsReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		_, err := apisim.Create(t.Context(), w.server, settings("one"))
		w.fatal(err)
		w.create(deployment("web", 3))
		program := w.start("rollout")
		w.pass(5 * time.Second)
		former := w.onlySet()
		w.server.Inject(apisim.Match{Verb: "watch"}, apisim.Stall(apisim.EachFrame,
			500*time.Millisecond))
		w.delete("web")
		w.pass(5 * time.Second)
		w.create(deployment("web", 1))
		w.pass(5 * time.Second)
		w.check(1)
		if metav1.GetControllerOf(w.onlySet()).UID == metav1.GetControllerOf(former).UID {
			t.Error("the ReplicaSet is that of the former Deployment")
		}
		w.fatal(program.stop())
	})
}
