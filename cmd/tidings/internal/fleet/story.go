package fleet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// step makes exactly one write.
type step func(ctx context.Context, now time.Time) error

// story is what happens to one application, a write at a time.
type story struct {
	app   *app // nil for a story of a node
	steps []step
}

const (
	// atOnce is how many stories are under way at once, as long as enough
	// applications are free.
	atOnce = 8
	// beatOdds, configOdds and cordonOdds are how many of a thousand steps are
	// the heartbeat of a node, a changed configuration, and a node that is
	// closed to new pods and opened again.
	beatOdds, configOdds, cordonOdds = 150, 30, 5
)

// Step makes one write. Times in objects are those of now, in seconds, as
// Kubernetes keeps them.
func (f *Fleet) Step(ctx context.Context, now time.Time) error {
	now = now.Truncate(time.Second)
	roll := f.rng.IntN(1000)
	if roll < beatOdds {
		return f.heartbeat(ctx, now)
	}
	if roll < beatOdds+configOdds {
		if a := f.freeApp(); a != nil {
			return f.changeConfig(ctx, a)
		}
	}
	if roll < beatOdds+configOdds+cordonOdds {
		f.stories = append(f.stories, f.cordon())
	}
	for len(f.stories) < atOnce {
		a := f.freeApp()
		if a == nil {
			break
		}
		f.begin(a)
	}
	if len(f.stories) == 0 {
		return f.heartbeat(ctx, now)
	}
	i := f.rng.IntN(len(f.stories))
	current := f.stories[i]
	err := current.steps[0](ctx, now)
	if current.steps = current.steps[1:]; len(current.steps) == 0 {
		if current.app != nil {
			current.app.busy = false
		}
		f.stories = append(f.stories[:i], f.stories[i+1:]...)
	}
	return err
}

// tries is how often a free application is looked for.
const tries = 20

// freeApp returns an application that is in no story, or nil if none was found.
func (f *Fleet) freeApp() *app {
	for range tries {
		if a := f.apps[f.rng.IntN(len(f.apps))]; !a.busy {
			return a
		}
	}
	return nil
}

// begin starts a story about a.
func (f *Fleet) begin(a *app) {
	s := &story{app: a}
	switch roll := f.rng.IntN(100); {
	case roll < 20:
		s.steps = f.rollout(a)
	case roll < 45:
		s.steps = f.scale(a)
	case roll < 75:
		s.steps = f.crashed(a)
	default:
		s.steps = f.evicted(a)
	}
	a.busy = true
	f.stories = append(f.stories, s)
}

func (f *Fleet) heartbeat(ctx context.Context, now time.Time) error {
	i := f.rng.IntN(len(f.nodes))
	return update(ctx, f, &f.nodes[i], func(node *corev1.Node) { beat(node, now) })
}

// cordon closes a node to new pods and opens it again.
func (f *Fleet) cordon() *story {
	i := f.rng.IntN(len(f.nodes))
	set := func(closed bool) step {
		return func(ctx context.Context, _ time.Time) error {
			return update(ctx, f, &f.nodes[i], func(node *corev1.Node) { node.Spec.Unschedulable = closed })
		}
	}
	return &story{steps: []step{set(true), set(false)}}
}
