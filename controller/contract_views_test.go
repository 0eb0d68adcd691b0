package controller_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

// deploymentView is a view of Deployments, replicaSetView one of ReplicaSets.
type deploymentView struct {
	tidings.Meta `json:"metadata"`
	Spec         struct {
		Paused bool `json:"paused"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
	} `json:"status"`
}

type replicaSetView struct {
	tidings.Meta `json:"metadata"`
	Status       struct {
		ReadyReplicas int32 `json:"readyReplicas"`
	} `json:"status"`
}

type viewRequest = controller.Request[*deploymentView]

func deploymentViews(w *world) *tidings.Informer[*deploymentView] {
	w.Helper()
	i, err := tidings.View[*deploymentView, *appsv1.Deployment](w.factory, tidings.Selection{})
	fatal(w.T, err)
	return i
}

// TestV4_AControllerOfViews has a controller whose primary and secondaries are views. It adds a
// finalizer, writes the status, and makes a child; each call sees what the calls before have
// written.
func TestV4_AControllerOfViews(t *testing.T) {
	inWorld(t, func(w *world) {
		deployments := deploymentViews(w)
		replicaSets, err := tidings.View[*replicaSetView, *appsv1.ReplicaSet](w.factory, tidings.Selection{})
		fatal(t, err)
		nodes, err := tidings.View[*nodeView, *corev1.Node](w.factory, tidings.Selection{})
		fatal(t, err)
		var log calls
		kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
		apps := w.client.AppsV1()
		c := control(w, deployments, controller.Options[*deploymentView]{
			Secondaries: []controller.Secondary{
				controller.Owns(replicaSets),
				controller.Maps(nodes, func(n *nodeView) iter.Seq[string] {
					return keysOf(n.Annotations)
				}),
			},
		}, func(ctx context.Context, r viewRequest) (controller.Result, error) {
			d := known(r)
			owned := 0
			for range controller.Read(ctx, replicaSets).Controlled(d.UID) {
				owned++
			}
			log.add("%s gone=%v finalizers=%d observed=%d owned=%d", r.Key, r.Gone, len(d.Finalizers),
				d.Status.ObservedGeneration, owned)
			switch {
			case r.Gone:
				return controller.Result{}, nil
			case d.DeletionTimestamp != nil:
				_, err := objects.RemoveFinalizer(ctx, apps.Deployments(d.Namespace), d, "test/x")
				return controller.Result{}, err
			case len(d.Finalizers) == 0:
				_, err := objects.AddFinalizer(ctx, apps.Deployments(d.Namespace), d, "test/x")
				return controller.Result{}, err
			case d.Status.ObservedGeneration != d.Generation:
				_, err := objects.PatchStatus(ctx, apps.Deployments(d.Namespace), d,
					map[string]any{"observedGeneration": d.Generation})
				return controller.Result{}, err
			case owned == 0:
				ref := objects.ControllerRef(d, kind)
				_, err := apps.ReplicaSets(d.Namespace).Create(ctx, &appsv1.ReplicaSet{
					ObjectMeta: metav1.ObjectMeta{Name: d.Name, OwnerReferences: []metav1.OwnerReference{{
						APIVersion: *ref.APIVersion, Kind: *ref.Kind, Name: *ref.Name, UID: *ref.UID, Controller: new(true),
					}}},
				}, metav1.CreateOptions{})
				return controller.Result{}, err
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		create(w, deployment("a", "x"))
		log.expect(t,
			"a/x gone=false finalizers=0 observed=0 owned=0",
			"a/x gone=false finalizers=1 observed=0 owned=0",
			"a/x gone=false finalizers=1 observed=1 owned=0",
			"a/x gone=false finalizers=1 observed=1 owned=1",
		)
		create(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"for": "a/x"}}})
		log.expect(t, "a/x gone=false finalizers=1 observed=1 owned=1")
		fatal(t, apps.Deployments("a").Delete(w.ctx, "x", metav1.DeleteOptions{}))
		synctest.Wait()
		got := log.take()
		if last := got[len(got)-1]; last != "a/x gone=true finalizers=1 observed=1 owned=1" {
			t.Errorf("calls after the delete: %q", got)
		}
		fatal(t, stop())
	})
}

// TestV4_BackoffOfAView: a write of the status by others does not end the backoff of a view, a new
// generation does, as for whole objects.
func TestV4_BackoffOfAView(t *testing.T) {
	inWorld(t, func(w *world) {
		var log calls
		c := control(w, deploymentViews(w), controller.Options[*deploymentView]{
			FirstDelay: time.Second, MaxDelay: time.Hour,
		}, func(_ context.Context, r viewRequest) (controller.Result, error) {
			log.add("after %d failures", r.Failures)
			return controller.Result{}, errors.New("not yet")
		})
		stop := start(w, c)
		create(w, deployment("a", "x"))
		time.Sleep(time.Minute)
		synctest.Wait()
		failures := len(log.take())
		patch := func(data string, subresources ...string) {
			_, err := w.client.AppsV1().Deployments("a").Patch(w.ctx, "x", types.MergePatchType, []byte(data),
				metav1.PatchOptions{}, subresources...)
			fatal(t, err)
			synctest.Wait()
		}
		patch(`{"status":{"observedGeneration":7}}`, "status")
		if got, want := log.take(), fmt.Sprintf("after %d failures", failures); len(got) != 1 || got[0] != want {
			t.Errorf("after the status: %q, want %q", got, want)
		}
		time.Sleep(2 * time.Second) // changes end a backoff not more often than the first delay
		patch(`{"spec":{"paused":true}}`)
		if got := log.take(); len(got) != 1 || got[0] != "after 0 failures" {
			t.Errorf("after a new generation: %q", got)
		}
		fatal(t, stop())
	})
}

// TestV4_FightBesideWholeObjects: a fight about a field that a view does not declare is seen by
// means of an informer of the whole objects.
func TestV4_FightBesideWholeObjects(t *testing.T) {
	inWorld(t, func(w *world) {
		whole := informer[*appsv1.Deployment](w)
		apps := w.client.AppsV1().Deployments("a")
		scale := func(ctx context.Context, n int, manager string) error {
			_, err := apps.Patch(ctx, "x", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n),
				metav1.PatchOptions{FieldManager: manager})
			return err
		}
		c := control(w, deploymentViews(w), controller.Options[*deploymentView]{
			Secondaries: []controller.Secondary{controller.Reads(whole)},
		}, func(ctx context.Context, r viewRequest) (controller.Result, error) {
			time.Sleep(time.Second)
			if cached, err := controller.Read(ctx, whole).Get(r.Key); err != nil || *cached.Spec.Replicas != 5 {
				return controller.Result{}, err
			}
			return controller.Result{}, scale(ctx, 1, "ours")
		})
		d := deployment("a", "x")
		d.Spec.Replicas = new(int32(1))
		create(w, d)
		stop := start(w, c)
		for range 10 {
			time.Sleep(10 * time.Second)
			fatal(t, scale(w.ctx, 5, "theirs"))
			synctest.Wait()
		}
		h := c.Health()
		if len(h.Fights) != 1 || len(h.Fights[0].Fields) != 1 || h.Fights[0].Fields[0] != "spec.replicas" {
			t.Errorf("fights: %+v", h.Fights)
		}
		fatal(t, stop())
	})
}
