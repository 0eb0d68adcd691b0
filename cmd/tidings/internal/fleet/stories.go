package fleet

import (
	"context"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// changeConfig changes one value of an application's configuration.
func (f *Fleet) changeConfig(ctx context.Context, a *app) error {
	return update(ctx, f, &a.config, func(config *corev1.ConfigMap) {
		if config.Data == nil {
			config.Data = make(map[string]string)
		}
		switch f.rng.IntN(4) {
		case 0:
			config.Data["log.level"] = map[string]string{"info": "debug", "debug": "info"}[config.Data["log.level"]]
		case 1:
			config.Data["cache.ttl"] = strconv.Itoa(30+f.rng.IntN(300)) + "s"
		case 2:
			config.Data["pool.size"] = strconv.Itoa(4 + f.rng.IntN(60))
		default:
			config.Data["feature.new-menus"] = strconv.FormatBool(config.Data["feature.new-menus"] == "false")
		}
	})
}

// rollout brings a new image to every pod of an application.
func (f *Fleet) rollout(a *app) []step {
	var steps []step
	if previous := a.previous; previous != nil {
		steps = append(steps, f.forgotten(a, previous))
	}
	steps = append(steps,
		func(ctx context.Context, _ time.Time) error { return f.setImage(ctx, a) },
		func(ctx context.Context, _ time.Time) error {
			a.previous, a.set = a.set, newReplicaSet(f.rng, a.deployment, 1)
			return create(ctx, f, &a.set)
		})
	total := int32(len(a.pods))
	for i, old := range slices.Clone(a.pods) {
		up, left := int32(i+1), total-int32(i+1)
		steps = append(steps, f.newMember(a)...)
		steps = append(steps,
			f.sized(&a.set, min(up+1, total)), f.statused(&a.set, up, up),
			f.gone(a, old),
			f.sized(&a.previous, left), f.statused(&a.previous, left, left),
			f.progressed(a, total, up, total))
	}
	return steps
}

// forgotten deletes the replica set of the revision before.
func (f *Fleet) forgotten(a *app, previous *appsv1.ReplicaSet) step {
	return func(ctx context.Context, _ time.Time) error {
		a.previous = nil
		return remove(ctx, f, previous)
	}
}

func (f *Fleet) setImage(ctx context.Context, a *app) error {
	a.patch++
	revision, err := strconv.Atoi(a.deployment.Annotations[revisionAnnotation])
	if err != nil {
		return err
	}
	return update(ctx, f, &a.deployment, func(d *appsv1.Deployment) {
		d.Annotations[revisionAnnotation] = strconv.Itoa(revision + 1)
		d.Spec.Template.Spec.Containers[0].Image = image(d.Namespace, d.Name, a.patch)
	})
}

// scale changes the number of pods by a few, towards the size of the whole fleet.
func (f *Fleet) scale(a *app) []step {
	from := int32(len(a.pods))
	to := from + 1 + f.rng.Int32N(3)
	if f.pods >= f.o.Pods {
		to = max(1, from-1-f.rng.Int32N(3))
	}
	steps := []step{
		func(ctx context.Context, _ time.Time) error {
			return update(ctx, f, &a.deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = new(to) })
		},
		f.sized(&a.set, to),
	}
	for range to - from {
		steps = append(steps, f.newMember(a)...)
	}
	for i := from; i > to; i-- {
		steps = append(steps, f.gone(a, a.pods[i-1]))
	}
	return append(steps, f.statused(&a.set, to, to), f.progressed(a, to, to, to))
}

// crashed ends a container and starts it again.
func (f *Fleet) crashed(a *app) []step {
	m := a.pods[f.rng.IntN(len(a.pods))]
	code, reason := int32(1), "Error"
	if f.rng.IntN(3) == 0 {
		code, reason = 137, "OOMKilled"
	}
	total := int32(len(a.pods))
	return []step{
		func(ctx context.Context, now time.Time) error {
			return update(ctx, f, &m.pod, func(pod *corev1.Pod) { crash(pod, code, reason, now) })
		},
		f.statused(&a.set, total, total-1),
		f.progressed(a, total, total, total-1),
		f.started(m),
		f.statused(&a.set, total, total),
		f.progressed(a, total, total, total),
	}
}

// evicted deletes a pod; another takes its place.
func (f *Fleet) evicted(a *app) []step {
	steps := []step{f.gone(a, a.pods[f.rng.IntN(len(a.pods))])}
	return append(steps, f.newMember(a)...)
}

// newMember creates a pod of an application's present replica set, puts it on a
// node and starts it.
func (f *Fleet) newMember(a *app) []step {
	m := new(member)
	return []step{
		func(ctx context.Context, _ time.Time) error {
			m.pod = newPod(f.rng, a.set)
			a.pods = append(a.pods, m)
			f.pods++
			return create(ctx, f, &m.pod)
		},
		f.placed(m),
		f.started(m),
	}
}

// placed puts a pod on a node, unless it is on one.
func (f *Fleet) placed(m *member) step {
	return func(ctx context.Context, now time.Time) error {
		if m.pod.Spec.NodeName != "" {
			return nil
		}
		node := f.someNode()
		return update(ctx, f, &m.pod, func(pod *corev1.Pod) { schedule(pod, node, now) })
	}
}

func (f *Fleet) started(m *member) step {
	return func(ctx context.Context, now time.Time) error {
		return update(ctx, f, &m.pod, func(pod *corev1.Pod) { startContainers(f.rng, pod, now) })
	}
}

func (f *Fleet) gone(a *app, m *member) step {
	return func(ctx context.Context, _ time.Time) error {
		a.pods = slices.DeleteFunc(a.pods, func(other *member) bool { return other == m })
		f.pods--
		return remove(ctx, f, m.pod)
	}
}

func (f *Fleet) sized(slot **appsv1.ReplicaSet, replicas int32) step {
	return func(ctx context.Context, _ time.Time) error {
		return update(ctx, f, slot, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = new(replicas) })
	}
}

func (f *Fleet) statused(slot **appsv1.ReplicaSet, replicas, ready int32) step {
	return func(ctx context.Context, _ time.Time) error {
		return update(ctx, f, slot, func(set *appsv1.ReplicaSet) { setReplicaSetStatus(set, replicas, ready) })
	}
}

func (f *Fleet) progressed(a *app, replicas, updated, ready int32) step {
	return func(ctx context.Context, _ time.Time) error {
		return update(ctx, f, &a.deployment, func(d *appsv1.Deployment) { setDeploymentStatus(d, replicas, updated, ready) })
	}
}
