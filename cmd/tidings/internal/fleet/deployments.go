package fleet

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

// app is a deployment with its replica sets.
type app struct {
	*cluster
	deployment *appsv1.Deployment
	set        *appsv1.ReplicaSet   // of the deployment's template; nil if there is none
	old        []*appsv1.ReplicaSet // the other ones, by revision
}

func (c *cluster) newDeployments() (controller.Runner, error) {
	return controller.New(c.deployments, options[*appsv1.Deployment](c, "deployments",
		controller.Owns(c.sets)), c.reconcileDeployment)
}

// reconcileDeployment makes one step of a rollout. The changes of replica sets lead to the next
// one.
func (c *cluster) reconcileDeployment(
	ctx context.Context, r controller.Request[*appsv1.Deployment],
) (done controller.Result, err error) {
	if !isAlive(r) || r.Object.Spec.Selector == nil {
		return done, nil
	}
	a := c.newApp(ctx, r.Object)
	for _, step := range []func(context.Context) error{
		a.writeSets, a.writeRevision, a.forgetRevisions, a.writeStatus,
	} {
		if err := step(ctx); err != nil {
			return done, err
		}
	}
	return done, nil
}

// newApp finds the replica sets of a deployment. For a template without a replica set it makes one,
// without pods, unless the rollout is paused.
func (c *cluster) newApp(ctx context.Context, d *appsv1.Deployment) *app {
	a := &app{cluster: c, deployment: d}
	name := setName(d)
	for _, set := range controller.Read(ctx, c.sets).Namespace(d.Namespace).Controlled(d.UID) {
		if set.Name == name {
			a.set = set
		} else {
			a.old = append(a.old, set)
		}
	}
	slices.SortStableFunc(a.old, func(x, y *appsv1.ReplicaSet) int {
		return cmp.Compare(revision(x), revision(y))
	})
	if a.set == nil && !d.Spec.Paused {
		a.set = newReplicaSet(d, a.revision())
	}
	return a
}

// sets returns the replica sets, the one of the template last.
func (a *app) sets() []*appsv1.ReplicaSet {
	if a.set == nil {
		return a.old
	}
	return append(slices.Clip(a.old), a.set)
}

// revision returns the revision of the deployment's template, which is higher than all others. An
// old template that is used again gets a new revision.
func (a *app) revision() int {
	newest := 0
	if len(a.old) > 0 {
		newest = revision(a.old[len(a.old)-1])
	}
	if a.set != nil {
		return max(revision(a.set), newest+1)
	}
	return newest + 1
}

// surge is the number of pods beyond the wanted ones that a rollout may create.
const surge = 1

// sizes returns the wanted number of pods of each of sets. A rollout moves pods to the last set.
// That set grows while there are not too many pods. The others lose the pods that are not ready or
// not needed.
func (a *app) sizes() []int32 {
	sets, want := a.sets(), replicas(a.deployment.Spec.Replicas)
	sizes := make([]int32, len(sets))
	if len(sets) == 0 {
		return sizes
	}
	last := len(sets) - 1
	if a.deployment.Spec.Paused {
		return pausedSizes(sets, want)
	}
	total, ready := int32(0), int32(0)
	for _, set := range sets {
		total += replicas(set.Spec.Replicas)
		ready += readyOf(set)
	}
	size := replicas(sets[last].Spec.Replicas)
	sizes[last] = min(want, size+max(0, want+surge-total))
	for i, set := range sets[:last] {
		spare := min(max(0, ready-want), readyOf(set))
		sizes[i] = readyOf(set) - spare
		ready -= spare
	}
	return sizes
}

// readyOf returns the number of pods of a replica set that are ready and not about to be deleted.
func readyOf(set *appsv1.ReplicaSet) int32 {
	return min(set.Status.ReadyReplicas, replicas(set.Spec.Replicas))
}

// pausedSizes returns the sizes during a paused rollout, which moves no pod: the last replica set
// grows with the deployment, and the newest sets shrink first.
func pausedSizes(sets []*appsv1.ReplicaSet, left int32) (sizes []int32) {
	for i, set := range sets {
		size := left
		if i < len(sets)-1 {
			size = min(replicas(set.Spec.Replicas), left)
		}
		sizes = append(sizes, size)
		left -= size
	}
	return sizes
}

// writeSets writes the sizes of the replica sets, and the revision of the template's replica set.
func (a *app) writeSets(ctx context.Context) (err error) {
	client, sizes := a.appsV1.ReplicaSets(a.deployment.Namespace), a.sizes()
	for i, set := range a.sets() {
		next := set.DeepCopy()
		next.Spec.Replicas = new(sizes[i])
		if set == a.set {
			annotate(next, a.deployment, a.revision())
		}
		switch {
		case set.UID == "":
			a.set, err = client.Create(ctx, next, metav1.CreateOptions{})
		case replicas(set.Spec.Replicas) != sizes[i] ||
			revision(set) != revision(next) ||
			set.Annotations[causeAnnotation] != next.Annotations[causeAnnotation]:
			_, err = client.Update(ctx, next, metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeRevision gives the deployment the revision of its template.
func (a *app) writeRevision(ctx context.Context) (err error) {
	if a.set == nil || revision(a.deployment) == a.revision() {
		return nil
	}
	next := a.deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, revisionAnnotation,
		strconv.Itoa(a.revision()))
	a.deployment, err = a.appsV1.Deployments(next.Namespace).Update(ctx, next,
		metav1.UpdateOptions{})
	return err
}

// forgetRevisions deletes the oldest replica sets without pods, if there are more than the
// deployment keeps.
func (a *app) forgetRevisions(ctx context.Context) error {
	limit := int32(10) // the default of Kubernetes
	if a.deployment.Spec.RevisionHistoryLimit != nil {
		limit = max(0, *a.deployment.Spec.RevisionHistoryLimit)
	}
	client := a.appsV1.ReplicaSets(a.deployment.Namespace)
	for _, set := range a.old[:max(0, len(a.old)-int(limit))] {
		if replicas(set.Spec.Replicas)+set.Status.Replicas > 0 || !set.DeletionTimestamp.IsZero() {
			continue
		}
		if err := remove(ctx, client, set, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) writeStatus(ctx context.Context) error {
	_, err := objects.UpdateStatus(ctx, a.appsV1.Deployments(a.deployment.Namespace),
		a.deployment, func(d *appsv1.Deployment) {
			status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation}
			for _, set := range a.sets() {
				status.Replicas += set.Status.Replicas
				status.ReadyReplicas += set.Status.ReadyReplicas
			}
			if a.set != nil {
				status.UpdatedReplicas = a.set.Status.Replicas
			}
			status.AvailableReplicas = status.ReadyReplicas
			status.UnavailableReplicas = max(0,
				replicas(d.Spec.Replicas)-status.ReadyReplicas)
			status.Conditions = conditions(d, status, time.Now())
			d.Status = status
		})
	return err
}

// maxReplicasWanted bounds the pods of a deployment or a replica set, regardless of its spec.
const maxReplicasWanted = 500

// replicas returns the number of pods that a field of a specification requests.
func replicas(field *int32) int32 {
	return min(max(0, *cmp.Or(field, new(int32(1)))), maxReplicasWanted)
}
