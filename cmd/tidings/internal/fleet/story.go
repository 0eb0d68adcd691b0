package fleet

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step makes one write, or none where somebody else's has made it pointless.
type step func(ctx context.Context, now time.Time) error

// story is what happens to one application, a write at a time.
type story struct {
	app   *app // nil for a story of a node
	steps []step
	// answer says that it is told because of what somebody else did, who is waiting.
	answer bool
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
// Kubernetes keeps them. Where somebody else's writes come in its way it makes none: it
// looks at what they left, and goes on from there with the next step.
func (f *Fleet) Step(ctx context.Context, now time.Time) error {
	now = now.Truncate(time.Second)
	if answered, err := f.Answer(ctx, now); answered || err != nil {
		return err
	}
	roll := f.rng.IntN(1000)
	if roll < beatOdds {
		return f.heartbeat(ctx, now)
	}
	if roll < beatOdds+configOdds {
		if a := f.freeApp(); a != nil && a.config != nil {
			return f.bear(a, f.changeConfig(ctx, a))
		}
	}
	if roll < beatOdds+configOdds+cordonOdds {
		f.stories = append(f.stories, f.cordon())
	}
	for len(f.stories) < atOnce {
		a := f.freeApp()
		if a == nil || !f.begin(a) {
			break
		}
	}
	if len(f.stories) == 0 {
		return f.heartbeat(ctx, now)
	}
	return f.tell(ctx, f.rng.IntN(len(f.stories)), now)
}

// Answer makes the next write of what is to be done about the writes of others. It
// reports whether there was something to do.
func (f *Fleet) Answer(ctx context.Context, now time.Time) (bool, error) {
	if err := f.attend(ctx); err != nil {
		return false, err
	}
	i := slices.IndexFunc(f.stories, func(s *story) bool { return s.answer })
	if i < 0 {
		return false, nil
	}
	return true, f.tell(ctx, i, now.Truncate(time.Second))
}

// tell takes the next step of a story.
func (f *Fleet) tell(ctx context.Context, i int, now time.Time) error {
	current := f.stories[i]
	err := current.steps[0](ctx, now)
	if current.steps = current.steps[1:]; len(current.steps) == 0 {
		if current.app != nil {
			current.app.busy = false
		}
		f.stories = slices.Delete(f.stories, i, i+1)
	}
	return f.bear(current.app, err)
}

// bear returns no error for one that comes of what somebody else has written: the
// application is inspected in the next step.
func (f *Fleet) bear(a *app, err error) error {
	if a == nil || !isForeign(err) && !(a.kept && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown) {
		return err
	}
	f.surprised[a] = true
	return nil
}

// tries is how often a free application is looked for.
const tries = 20

// freeApp returns an application that is in no story, or nil if none was found.
func (f *Fleet) freeApp() *app {
	if len(f.apps) == 0 {
		return nil // somebody has deleted them all
	}
	for range tries {
		if a := f.apps[f.rng.IntN(len(f.apps))]; !a.busy {
			return a
		}
	}
	return nil
}

// begin starts a story about a. It reports whether there is one that can be told.
func (f *Fleet) begin(a *app) bool {
	s := &story{app: a}
	switch roll := f.rng.IntN(100); {
	case roll < 10 && a.database != nil:
		s.steps = f.tended(a)
	case len(a.pods) == 0 && a.kept:
		return false // somebody wants it so
	case roll < 25 && !a.kept:
		s.steps = f.rollout(a)
	case (roll < 45 || len(a.pods) == 0) && !a.kept:
		s.steps = f.scale(a)
	case roll < 75:
		s.steps = f.crashed(a)
	default:
		s.steps = f.evicted(a)
	}
	a.busy = true
	f.stories = append(f.stories, s)
	return true
}

func (f *Fleet) heartbeat(ctx context.Context, now time.Time) error {
	return f.onNode(ctx, f.rng.IntN(len(f.nodes)), func(node *corev1.Node) { beat(node, now) })
}

// onNode changes a node. One that somebody has deleted registers again.
func (f *Fleet) onNode(ctx context.Context, i int, change func(*corev1.Node)) error {
	err := update(ctx, f, &f.nodes[i], change)
	if apierrors.IsNotFound(err) {
		f.nodes[i] = renewed(f.nodes[i])
		return create(ctx, f, &f.nodes[i])
	}
	return err
}

// cordon closes a node to new pods and opens it again.
func (f *Fleet) cordon() *story {
	i := f.rng.IntN(len(f.nodes))
	set := func(closed bool) step {
		return func(ctx context.Context, _ time.Time) error {
			return f.onNode(ctx, i, func(node *corev1.Node) { node.Spec.Unschedulable = closed })
		}
	}
	return &story{steps: []step{set(true), set(false)}}
}
