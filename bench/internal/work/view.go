package work

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/stack"
)

// view is what a handler has been told: the version of every object there is, and how
// many came and went. It can hold the handler's calls, and let them go on.
type view struct {
	mu             sync.Mutex // guards what follows
	versions       map[string]string
	added, deleted int
	release        chan struct{} // calls wait until it is closed; nil: they return at once
	goal           *view         // what this view is compared with; nil: nothing
	loose          bool          // the numbers of adds and deletes are not compared
	wrong          int           // how many keys differ from the goal's
	caught         chan struct{} // closed when this view is like its goal
}

func newView() *view { return &view{versions: map[string]string{}, caught: make(chan struct{})} }

// hold makes calls wait from now on.
func (v *view) hold() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.release = make(chan struct{})
}

// wait waits while calls are held.
func (v *view) wait() {
	v.mu.Lock()
	release := v.release
	v.mu.Unlock()
	if release != nil {
		<-release
	}
}

// handler returns a handler of this view; then is called last in each call.
func (v *view) handler(policy string, then func()) stack.Handler {
	step := func(o metav1.Object, f func(key string)) {
		v.wait()
		v.mu.Lock()
		key := o.GetNamespace() + "/" + o.GetName()
		v.wrong -= v.differsLocked(key)
		f(key)
		v.wrong += v.differsLocked(key)
		v.compareLocked()
		v.mu.Unlock()
		then()
	}
	set := func(o metav1.Object) func(string) {
		return func(key string) { v.versions[key] = o.GetResourceVersion() }
	}
	return stack.Handler{
		Policy: policy,
		Add:    func(o metav1.Object) { step(o, func(key string) { v.added++; set(o)(key) }) },
		Update: func(_, o metav1.Object) { step(o, set(o)) },
		Delete: func(o metav1.Object) { step(o, func(key string) { v.deleted++; delete(v.versions, key) }) },
	}
}

// differsLocked returns 1 if a key is not as the goal has it, and 0 otherwise.
func (v *view) differsLocked(key string) int {
	if v.goal == nil {
		return 0
	}
	mine, here := v.versions[key]
	theirs, there := v.goal.versions[key]
	if mine == theirs && here == there {
		return 0
	}
	return 1
}

// compareLocked closes caught when the view has become like its goal.
func (v *view) compareLocked() {
	if v.goal == nil || v.wrong > 0 || !v.loose && (v.added != v.goal.added || v.deleted != v.goal.deleted) {
		return
	}
	v.goal = nil
	close(v.caught)
}

// catchUp lets the calls go on and waits until the view is like another, which must not
// change any more. If loose, it may have been told of fewer adds and deletes.
func (v *view) catchUp(ctx context.Context, goal *view, loose bool) error {
	v.mu.Lock()
	v.goal, v.loose = goal, loose
	for key := range goal.versions {
		v.wrong += v.differsLocked(key)
	}
	for key := range v.versions {
		if _, ok := goal.versions[key]; !ok {
			v.wrong++
		}
	}
	v.compareLocked()
	close(v.release)
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-v.caught:
		return nil
	case <-ctx.Done():
		v.mu.Lock()
		defer v.mu.Unlock()
		return fmt.Errorf("work: the handler that was stuck was told of %d adds and %d deletes, and has %d objects wrong; want %d, %d and 0: %w",
			v.added, v.deleted, v.wrong, goal.added, goal.deleted, context.Cause(ctx))
	}
}
