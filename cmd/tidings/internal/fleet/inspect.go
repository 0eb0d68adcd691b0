package fleet

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxWanted bounds how many pods an application is given, however many somebody asks for.
const maxWanted = 500

// inspect brings the model of an application to what the cluster holds, after somebody
// else has written there, and begins the story of what controllers would do about it. The
// story that was under way is dropped: the new one goes on from where that was.
func (f *Fleet) inspect(ctx context.Context, a *app) error {
	f.stories = slices.DeleteFunc(f.stories, func(s *story) bool { return s.app == a })
	a.busy = false
	there, err := refresh(ctx, f, &a.deployment)
	if err != nil {
		return err
	}
	if err := f.inspectParts(ctx, a); err != nil {
		return err
	}
	var steps []step
	if !there || a.deployment.DeletionTimestamp != nil {
		steps = f.collected(a)
		f.drop(a)
	} else {
		steps = f.reconciled(a)
	}
	if len(steps) > 0 {
		a.busy = true
		f.stories = append(f.stories, &story{app: a, steps: steps, answer: true})
	}
	return nil
}

// drop takes an application out of the model.
func (f *Fleet) drop(a *app) {
	f.apps = slices.DeleteFunc(f.apps, func(other *app) bool { return other == a })
	delete(f.byName, keyOf(a.deployment))
	f.pods -= len(a.pods)
}

// refresh replaces the object in slot by its newest state. It reports whether there is
// one; where the name has passed to another object, that is the newest state.
func refresh[T Object](ctx context.Context, f *Fleet, slot *T) (bool, error) {
	newest, err := f.cluster.Get(ctx, *slot)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	*slot = newest.(T)
	return true, nil
}

// inspectParts brings what belongs to an application to what the cluster holds. What is
// gone is forgotten.
func (f *Fleet) inspectParts(ctx context.Context, a *app) error {
	if err := keep(ctx, f, &a.set, a.set != nil); err != nil {
		return err
	}
	if err := keep(ctx, f, &a.previous, a.previous != nil); err != nil {
		return err
	}
	if err := keep(ctx, f, &a.config, a.config != nil); err != nil {
		return err
	}
	if err := keep(ctx, f, &a.service, a.service != nil); err != nil {
		return err
	}
	if err := keep(ctx, f, &a.database, a.database != nil); err != nil {
		return err
	}
	var there []*member
	for _, m := range a.pods {
		if m.pod.UID == "" {
			f.pods-- // it was never created
			continue
		}
		uid := m.pod.UID
		ok, err := refresh(ctx, f, &m.pod)
		if err != nil {
			return err
		}
		if !ok || m.pod.UID != uid {
			f.pods--
			continue
		}
		there = append(there, m)
	}
	a.pods = there
	return nil
}

// keep refreshes the object in slot, if there is one, and empties the slot if it is gone.
func keep[T Object](ctx context.Context, f *Fleet, slot *T, filled bool) error {
	if !filled {
		return nil
	}
	there, err := refresh(ctx, f, slot)
	if !there && err == nil {
		var none T
		*slot = none
	}
	return err
}

// collected deletes what a deployment leaves behind, as the garbage collector does.
func (f *Fleet) collected(a *app) []step {
	var steps []step
	for _, set := range []*appsv1.ReplicaSet{a.previous, a.set} {
		if set != nil {
			steps = append(steps, func(ctx context.Context, _ time.Time) error { return remove(ctx, f, set) })
		}
	}
	for _, m := range a.pods {
		steps = append(steps, func(ctx context.Context, _ time.Time) error { return remove(ctx, f, m.pod) })
	}
	return steps
}

// reconciled brings an application to what its deployment says: a replica set of its
// template, and as many running pods of that as it wants.
func (f *Fleet) reconciled(a *app) []step {
	var steps []step
	if a.set == nil || !sameImages(a.set.Spec.Template.Spec, a.deployment.Spec.Template.Spec) {
		steps = append(steps, f.newSet(a)...)
	}
	current, changed := "", len(steps) > 0
	if !changed {
		current = string(a.set.UID)
	}
	var stay, leave []*member
	for _, m := range a.pods {
		owned := len(m.pod.OwnerReferences) > 0 && string(m.pod.OwnerReferences[0].UID) == current
		if owned && m.pod.DeletionTimestamp == nil && len(stay) < int(wanted(a.deployment)) {
			stay = append(stay, m)
		} else {
			leave = append(leave, m)
		}
	}
	for range int(wanted(a.deployment)) - len(stay) {
		steps = append(steps, f.newMember(a)...)
		if len(leave) > 0 {
			steps, leave = append(steps, f.gone(a, leave[0])), leave[1:]
		}
		changed = true
	}
	for _, m := range leave {
		steps, changed = append(steps, f.gone(a, m)), true
	}
	for _, m := range stay {
		if !isReady(m.pod) {
			steps, changed = append(steps, f.placed(m), f.started(m)), true
		}
	}
	if changed || a.deployment.Status.ReadyReplicas != wanted(a.deployment) {
		steps = append(steps, f.settled(a)...)
	}
	return steps
}

// newSet makes the replica set of a deployment's template; the one that there was becomes
// the previous one.
func (f *Fleet) newSet(a *app) []step {
	var steps []step
	if previous := a.previous; previous != nil {
		steps = append(steps, f.forgotten(a, previous))
	}
	return append(steps, func(ctx context.Context, _ time.Time) error {
		a.previous, a.set = a.set, newReplicaSet(f.rng, a.deployment, wanted(a.deployment))
		return create(ctx, f, &a.set)
	})
}

// settled says in the status of all parts that everything is as it is to be.
func (f *Fleet) settled(a *app) []step {
	n := wanted(a.deployment)
	steps := []step{f.sized(&a.set, n), f.statused(&a.set, n, n)}
	return append(steps,
		func(ctx context.Context, now time.Time) error {
			if a.previous == nil {
				return nil
			}
			return f.sized(&a.previous, 0)(ctx, now)
		},
		func(ctx context.Context, now time.Time) error {
			if a.previous == nil {
				return nil
			}
			return f.statused(&a.previous, 0, 0)(ctx, now)
		},
		f.progressed(a, n, n, n))
}

// wanted returns how many pods a deployment has.
func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return min(max(0, *d.Spec.Replicas), maxWanted)
}

func sameImages(a, b corev1.PodSpec) bool {
	return slices.EqualFunc(a.Containers, b.Containers, func(a, b corev1.Container) bool { return a.Name == b.Name && a.Image == b.Image })
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
