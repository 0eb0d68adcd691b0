package contract_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/source"
)

// errorIs is errors.Is that takes nil for an error too.
func errorIs(err, want error) bool {
	return err == nil && want == nil || want != nil && errors.Is(err, want)
}

// step does one random thing.
func (l *lives) step() {
	l.steps++
	switch n := l.random.IntN(100); {
	case n < 14:
		l.askFor()
	case n < 26:
		l.start()
	case n < 33 && len(l.terms) > 0:
		t := l.terms[l.random.IntN(len(l.terms))]
		l.note("a term ends")
		t.stop()
	case n < 48:
		l.write()
	case n < 52:
		pause := time.Duration(l.random.IntN(30000)) * time.Millisecond
		l.note("pause of %v", pause)
		time.Sleep(pause)
	case n < 55:
		synctest.Wait()
	case n < 58:
		l.lastChanged = l.steps
		l.note("the server refuses, or no more")
		if l.chance(50) {
			l.gate.set(refuse(503, "ServiceUnavailable"))
		} else {
			l.gate.set(nil)
		}
	case n < 60:
		l.waitForAll()
	case n < 63:
		l.moveSlots()
	case n < 64 && l.chance(30):
		l.shutdown()
	case len(l.handles) > 0:
		l.use(l.handles[l.random.IntN(len(l.handles))])
	}
}

// use does one random thing with a handle.
func (l *lives) use(h *handle) {
	switch n := l.random.IntN(100); {
	case n < 30:
		l.join(h)
	case n < 45 && len(h.handlers) > 0:
		l.disturb(h.handlers[l.random.IntN(len(h.handlers))])
	case n < 60:
		l.wait(h)
	case n < 70:
		l.run(h)
	case n < 85:
		l.changeNamespaces(h)
	default:
		l.release(h)
	}
}

// askFor asks for an informer: of the factory, or without one.
func (l *lives) askFor() {
	s := &subject{kind: []string{"typed", "dynamic", "metadata", "own"}[l.random.IntN(4)]}
	name := fmt.Sprint("handle-", len(l.handles))
	if s.kind == "own" {
		s.own = true
		resource := source.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Scope: source.ScopeNamespaced}
		typed := source.NewTyped(l.client, resource, func() *corev1.ConfigMap { return new(corev1.ConfigMap) }, source.RESTOptions{})
		i, err := tidings.NewInformer(typed, tidings.InformerOptions[*corev1.ConfigMap]{Name: name})
		l.take(&handle{subject: s, name: name, probe: newProbe(l.T, i, err)})
		return
	}
	if l.shut {
		l.wants("For after Shutdown", errOf(tidings.For[*corev1.ConfigMap](l.factory, s.selection)), tidings.ErrStopped)
		return
	}
	switch l.random.IntN(6) {
	case 5:
		s.selection.Slots = l.slots
	case 0:
		s.namespaces = []string{"default"}
	case 1:
		s.namespaces = []string{"default", "one"}
	case 2:
		s.selection.Labels = "n=1"
	case 3:
		if s.kind == "typed" {
			s.selection.Transform = l.slow
		}
	}
	s.selection.Namespaces = s.namespaces
	asked := s.selection // that of a known one may have changed
	if known := l.current[s.key()]; known != nil && known.over() == nil {
		s = known
	} else {
		l.forget(known)
		l.add(s)
	}
	l.take(&handle{subject: s, name: name, probe: kinds[s.kind](l.T, l.factory, asked)})
}

func (l *lives) take(h *handle) {
	h.subject.handles++
	l.handles = append(l.handles, h)
	l.note("%s is to %p, %s", h.name, h.subject, h.key())
}

// forget takes a subject off the factory.
func (l *lives) forget(s *subject) {
	if s != nil && l.current[s.key()] == s {
		delete(l.current, s.key())
	}
	l.order = slices.DeleteFunc(l.order, func(other *subject) bool { return other == s })
}

// term returns a context to run with, a new one or one of before.
func (l *lives) term() *term {
	if len(l.terms) > 0 && l.chance(30) {
		return l.terms[l.random.IntN(len(l.terms))]
	}
	t := &term{}
	t.ctx, t.stop = context.WithCancel(context.Background())
	if l.chance(50) {
		t.ctx = foreign{t.ctx}
	}
	l.terms = append(l.terms, t)
	return t
}

// start starts the factory.
func (l *lives) start() {
	t, want := l.term(), error(nil)
	switch {
	case t.ctx.Err() != nil:
		want = context.Canceled
	case l.shut, slices.ContainsFunc(l.order, func(s *subject) bool { return s.over() != nil }):
		want = tidings.ErrStopped
	}
	l.wants("Start", l.factory.Start(t.ctx), want)
	for _, s := range l.order {
		if want == nil && s.ctx == nil {
			s.ctx, s.claimed = t.ctx, l.steps
		}
	}
}

// run runs an informer with its handle.
func (l *lives) run(h *handle) {
	t, want := l.term(), error(nil)
	switch {
	case h.given:
		want = tidings.ErrReleased
	case h.ctx != nil:
		want = tidings.ErrRanAlready
	case h.over() != nil:
		want = tidings.ErrStopped
	default:
		h.ctx, h.claimed = t.ctx, l.steps
	}
	l.noteEnds() // t may have ended before
	done := make(chan error, 1)
	go func() { done <- h.probe.informer().Run(t.ctx) }()
	synctest.Wait()
	if want == nil {
		l.note("%s runs", h.name)
		l.runs = append(l.runs, done)
		return
	}
	select {
	case err := <-done:
		l.wants(h.name+": Run", err, want)
	default:
		l.Errorf("%s: Run has not returned, want %v", h.name, want)
	}
}

// join adds a handler.
func (l *lives) join(h *handle) {
	m := &model{world: &world{T: l.T, probe: h.probe, uids: l.uids}}
	f := &listener{of: h.subject, folder: newFolder(m, fmt.Sprint(h.name, "-", len(h.handlers)))}
	if want := h.over(); want != nil {
		l.wants(h.name+": AddHandler", h.probe.add(), want)
		return
	}
	o := tidings.HandlerOptions{Name: f.name}
	if l.chance(20) {
		f.pause = time.Duration(l.random.IntN(15)) * time.Second
		l.hung = true
	}
	if l.chance(20) {
		o.Resync = time.Duration(1+l.random.IntN(20)) * time.Second
	}
	l.note("%s joins: pause %v, %+v", f.name, f.pause, o)
	f.registration = h.probe.handle(f.handle, o)
	h.handlers = append(h.handlers, f)
}

// disturb blocks, frees or removes a handler.
func (l *lives) disturb(f *listener) {
	switch l.random.IntN(3) {
	case 0:
		l.note("%s is removed", f.name)
		f.remove()
	case 1:
		l.note("%s hangs", f.name)
		l.hung = true
		f.setBlocked(true)
	default:
		l.note("%s goes on", f.name)
		f.setBlocked(false)
	}
}

func (h *listener) remove() {
	h.registration.Remove()
	h.folder.removed = true
	h.removed.CompareAndSwap(0, time.Now().UnixNano())
}

// wait waits for an informer, or has something wait while the schedule goes on.
func (l *lives) wait(h *handle) {
	wait, what := h.probe.informer().WaitForSync, h.name+": WaitForSync"
	version := l.version
	toVersion := l.chance(50)
	if toVersion {
		what = h.name + ": WaitFor " + version
		wait = func(ctx context.Context) error { return h.probe.informer().WaitFor(ctx, version) }
	}
	if l.chance(50) {
		l.beside(what, wait)
		return
	}
	want := []error{h.waitable()}
	if want[0] == nil {
		want = []error{nil, context.DeadlineExceeded}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(l.random.IntN(60000))*time.Millisecond)
	defer cancel()
	err := wait(ctx)
	l.wants(what, err, want...)
	if err != nil {
		return
	}
	if !toVersion && !h.probe.informer().HasSynced() {
		l.Errorf("%s, which says that it is not", what)
	}
	if toVersion || l.lastChanged < h.claimed {
		synctest.Wait() // for a namespace that was removed
		l.compareReached(h, what)
	}
}

// compareReached compares a cache that has reached the last write. A delete has a version
// of its own that the model does not know.
func (l *lives) compareReached(h *handle, what string) {
	if h.selection.Slots != nil {
		return // slots may be on their way
	}
	got, want := h.probe.state(), l.expected(h.subject)
	for key, state := range want {
		if got[key] != state {
			l.Errorf("%s: %s is %q in the cache, want %q", what, key, got[key], state)
		}
	}
}

// moveSlots adds or removes slots. An Add may fail, and has to return.
func (l *lives) moveSlots() {
	set := randomSlots(l.random)
	if l.chance(40) {
		l.note("remove slots %v", set)
		l.slots.Remove(set)
		return
	}
	l.note("add slots %v", set)
	done := make(chan error, 1)
	go func() { done <- l.slots.Add(l.ctx, set) }()
	l.adds = append(l.adds, done)
}

// beside has something wait while the schedule goes on.
func (l *lives) beside(what string, wait func(context.Context) error) {
	l.note("%s goes on", what)
	done := make(chan error, 1)
	go func() { done <- wait(context.Background()) }()
	l.waits = append(l.waits, done)
}

// waitForAll waits for all informers of the factory.
func (l *lives) waitForAll() {
	if l.chance(50) {
		l.beside("WaitForSync of the factory", l.factory.WaitForSync)
		return
	}
	want := []error{nil, context.DeadlineExceeded}
	if slices.ContainsFunc(l.order, func(s *subject) bool { return s.ctx == nil || s.over() != nil }) {
		want = []error{tidings.ErrNotStarted, tidings.ErrStopped}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(l.random.IntN(60000))*time.Millisecond)
	defer cancel()
	err := l.factory.WaitForSync(ctx)
	l.wants("WaitForSync of the factory", err, want...)
	for _, h := range l.handles {
		if err == nil && slices.Contains(l.order, h.subject) && !h.given && !h.probe.informer().HasSynced() {
			l.Errorf("all were said to be synced, %s is not", h.name)
		}
	}
}

// changeNamespaces adds or removes one.
func (l *lives) changeNamespaces(h *handle) {
	namespace := livesNamespaces[l.random.IntN(len(livesNamespaces))]
	change, what := h.probe.informer().AddNamespace, h.name+": AddNamespace "+namespace
	at, found := slices.BinarySearch(h.namespaces, namespace)
	remove := l.chance(50)
	if remove {
		change, what = h.probe.informer().RemoveNamespace, h.name+": RemoveNamespace "+namespace
	}
	want := error(nil)
	switch {
	case h.given:
		want = tidings.ErrReleased
	case len(h.namespaces) == 0:
		want = tidings.ErrAllNamespaces
	case found != remove:
	case remove && len(h.namespaces) == 1:
		want = tidings.ErrLastNamespace
	default:
		want = h.over()
	}
	l.wants(what, change(namespace), want)
	if want != nil || found != remove {
		return
	}
	listed := slices.Contains(l.order, h.subject)
	if l.current[h.key()] == h.subject {
		delete(l.current, h.key())
	}
	if remove {
		h.namespaces = slices.Delete(slices.Clone(h.namespaces), at, at+1)
	} else {
		h.namespaces = slices.Insert(slices.Clone(h.namespaces), at, namespace)
	}
	h.claimed = l.steps
	if l.current[h.key()] == nil && listed {
		l.current[h.key()] = h.subject
	}
}

// release gives a handle back, perhaps once more.
func (l *lives) release(h *handle) {
	l.note("release of %s", h.name)
	for _, f := range h.handlers {
		f.folder.removed = true
		f.removed.CompareAndSwap(0, time.Now().UnixNano())
	}
	if !h.given {
		h.given = true
		if h.subject.handles--; h.subject.handles == 0 {
			h.released = true
			l.forget(h.subject)
		}
	}
	h.probe.informer().Release()
}

// shutdown ends the factory.
func (l *lives) shutdown() {
	l.shut = true
	for _, s := range l.order {
		s.shut = true
	}
	l.noteEnds()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(l.random.IntN(60000))*time.Millisecond)
	defer cancel()
	want := []error{nil}
	if l.hung {
		want = append(want, tidings.ErrHandlersStuck)
	}
	l.wants("Shutdown", l.factory.Shutdown(ctx), append(want, context.DeadlineExceeded)...)
}

// calm ends the disturbances, and checks that all living informers agree with the server.
func (l *lives) calm() {
	l.gate.set(nil)
	l.server.SetAvailable(true)
	for _, h := range l.handles {
		for _, f := range h.handlers {
			f.setBlocked(false)
		}
		if h.subject.over() != nil {
			l.release(h)
		}
	}
	l.noteEnds()
	if !l.shut {
		l.terms = nil // a new one
		l.start()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		l.wants("WaitForSync of the factory in the end", l.factory.WaitForSync(ctx), nil)
	}
	time.Sleep(20 * time.Minute)
	synctest.Wait()
	for _, h := range l.handles {
		if h.over() == nil && h.ctx != nil {
			l.compare(h, "in the end")
			cache := h.probe.state()
			for _, f := range h.handlers {
				f.compare(cache)
			}
		}
	}
}
