package tidingstest

import (
	"context"
	"errors"
	"slices"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
)

func nothingFollowsTheStop(r *rig) {
	r.create("a")
	r.start()
	r.agree("P09")
	if err := r.stop(); err != nil {
		r.Fatalf("P09: Run: %v", err)
	}
	if !isClosed(r.witness.registration.Done()) {
		r.Errorf("P09: Run has returned, and a handler is not done")
	}
	r.witness.End()
	before := r.cached("")
	r.update("a")
	r.create("b")
	r.settle()
	if difference := differ("the cache", r.cached(""), before); difference != "" {
		r.Errorf("P09: after the stop, compared with what it held, %s", difference)
	}
	if _, err := r.tryFollow("too late", nil, tidings.HandlerOptions{}); err == nil {
		r.Errorf("P09: a handler could be added after the stop")
	}
	if state := r.informer.Health().State; state != tidings.StateStopped {
		r.Errorf("P09: the state is %s after the stop", state)
	}
}

func removedHandler(r *rig) {
	r.create("a")
	f := r.follow("removed handler", nil, tidings.HandlerOptions{})
	r.start()
	r.agree("P09", f)
	f.registration.Remove()
	f.registration.Remove()
	r.awaitClosed("the removed handler to end", f.registration.Done())
	f.End()
	r.update("a")
	r.remove("a")
	r.fence()
	r.agree("P09")
}

func handlerRemovesItself(r *rig) {
	calls := 0 // read after the handler is done
	pending := r.newHold()
	var f *follower
	f = r.follow("handler that removes itself", func(t follow.Event) {
		calls++
		pending.act(t)
		f.registration.Remove()
	}, tidings.HandlerOptions{})
	r.start() // with an empty initial set
	r.create("a")
	r.awaitEntered(pending)
	r.create("b")
	r.fence() // b is pending now
	close(pending.proceed)
	r.awaitClosed("the handler to end", f.registration.Done())
	r.fence()
	if calls != 1 {
		r.Errorf("P09: a handler that removed itself in its first call had %d", calls)
	}
	r.agree("P09")
}

// blockedHandlerIsRemoved removes a handler in the middle of a call.
func blockedHandlerIsRemoved(r *rig) {
	r.create("a")
	r.create("b")
	blocked := r.newHold()
	f := r.follow("blocked handler", blocked.act, tidings.HandlerOptions{})
	r.start()
	r.awaitEntered(blocked)
	f.registration.Remove()
	r.update("a")
	r.agree("P09")
	if isClosed(f.registration.Done()) {
		r.Errorf("P09: a removed handler is done while a call is running")
	}
	close(blocked.proceed)
	r.awaitClosed("the removed handler to end", f.registration.Done())
	f.End()
	if n := len(f.Take()); n != 1 {
		r.Errorf("P09: the removed handler had %d calls, want the one that it was removed in", n)
	}
	r.fence()
}

func stuckHandlerIsNamed(r *rig) {
	r.create("a")
	blocked := r.newHold()
	r.follow("sleepy", blocked.act, tidings.HandlerOptions{})
	r.start()
	r.awaitEntered(blocked)
	r.stuck = true
	err := r.stop()
	if !errors.Is(err, tidings.ErrHandlersStuck) || !strings.Contains(err.Error(), "sleepy") ||
		!strings.Contains(err.Error(), r.key("a")) {
		r.Errorf("P09: Run: %v, want an error that names the handler and the object", err)
	}
	close(blocked.proceed)
}

// panicCostsOne panics in one call. With a drop-in, apimachinery's settings decide whether
// the process ends; here it does not.
func panicCostsOne(r *rig) {
	if r.kind.DropIn {
		defer survivePanics(r)()
	}
	r.create("a.0")
	f := r.follow("panicking handler", func(e follow.Event) {
		if e.Type == tidings.Updated {
			panic("this handler does not like updates, as the test wants it")
		}
	}, tidings.HandlerOptions{IsolatePanics: true})
	r.start()
	r.agree("P11", f)
	r.update("a.0")
	r.remove("a.0")
	r.fence(f)
	var types []string
	for _, e := range f.takeOf(r.key("a.0")) {
		types = append(types, e.Type.String())
	}
	if !slices.Equal(types, []string{"Added", "Deleted"}) {
		r.Errorf("P11: beside the call that panicked, the handler received %v", types)
	}
	r.agree("P11", f)
	if r.kind.DropIn {
		r.must(r.stop())
		return
	}
	for _, h := range r.informer.Health().Handlers {
		if h.Name == f.name && h.Panics != 1 {
			r.Errorf("P11: the health counts %d panics", h.Panics)
		}
	}
}

// survivePanics keeps panics that apimachinery handles from ending the process. The
// returned function undoes that, and fails the test unless exactly one panic was reported.
func survivePanics(r *rig) (undo func()) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	reported := make(chan any, 10)
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = []func(context.Context, any){
		func(_ context.Context, value any) { reported <- value },
	}
	return func() {
		utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers
		if len(reported) != 1 {
			r.Errorf("P11: %d panics were reported, want 1", len(reported))
		}
	}
}

// indexFails makes the index function fail on two objects: they have no entry in the index,
// and everything else goes on.
func indexFails(r *rig) {
	r.must(r.tryCreate(r.key("a"), map[string]string{labelFault: "error"}))
	r.must(r.tryCreate(r.key("b"), map[string]string{labelFault: "panic"}))
	c := r.create("c")
	r.start()
	r.agree("P11")
	if keys := r.indexed(c); !slices.Equal(keys, []string{r.key("c")}) {
		r.Errorf("P11: the index has %q under %d", keys, c)
	}
	h := r.informer.Health()
	if h.IndexErrors != 2 || h.LastIndexError == nil ||
		!strings.Contains(h.LastIndexError.Error(), r.key("b")) &&
			!strings.Contains(h.LastIndexError.Error(), r.key("a")) {
		r.Errorf("P11: the health counts %d failures of the index function, want 2; the last: %v",
			h.IndexErrors, h.LastIndexError)
	}
	r.must(r.tryUpdate(r.key("b"), nil))
	r.agree("P11")
	if n := number(r.holds("b")); !slices.Equal(r.indexed(n), []string{r.key("b")}) {
		r.Errorf("P11: the object that can be indexed again is not")
	}
}

func runningTwice(r *rig) {
	r.create("a")
	r.start()
	again := make(chan struct{})
	var err error
	go func() {
		defer close(again)
		err = r.informer.Run(r.ctx)
	}()
	r.awaitClosed("the second Run to return", again)
	if !r.kind.DropIn && !errors.Is(err, tidings.ErrRanAlready) {
		r.Errorf("P20: Run of a running informer: %v", err)
	}
	r.update("a")
	r.create("b")
	r.agree("P20")
}
