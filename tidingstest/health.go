package tidingstest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
)

// refusalsHeal refuses the requests of an informer from the beginning, for every reason,
// until its health reports the refusal.
func refusalsHeal(r *rig) {
	r.create("a")
	refusals := []struct {
		code   int
		reason metav1.StatusReason
		state  tidings.State
	}{
		{http.StatusForbidden, metav1.StatusReasonForbidden, tidings.StateForbidden},
		{http.StatusNotFound, metav1.StatusReasonNotFound, tidings.StateNoSuchResource},
		{http.StatusInternalServerError, metav1.StatusReasonInternalError, tidings.StateBackoff},
	}
	r.refuse(refusals[0].code, refusals[0].reason)
	r.run()
	for _, refusal := range refusals {
		r.refuse(refusal.code, refusal.reason)
		r.await("P13", func() string {
			h := r.informer.Health()
			if h.State != refusal.state || h.LastError == nil ||
				!strings.Contains(h.LastError.Error(), "refused by the test") {
				return fmt.Sprintf("the health is %+v, want %s with its cause", h, refusal.state)
			}
			return ""
		})
		if isClosed(r.informer.Synced()) || r.informer.Health().Synced {
			r.Fatalf("P13: an informer that is refused is synced")
		}
	}
	r.gate.change(func() { r.gate.answer = nil })
	r.awaitClosed("the informer to sync", r.informer.Synced())
	r.agree("P13")
	r.awaitState(tidings.StateWatching)
}

// refuse answers every request of the informer with a status.
func (r *rig) refuse(code int, reason metav1.StatusReason) {
	r.gate.change(func() {
		r.gate.answer = func(request *http.Request) *http.Response {
			return refusal(request, code, reason, 0)
		}
	})
}

// refusedNamespace refuses the requests for one of several namespaces.
func refusedNamespace(r *rig) {
	r.create("a.0")
	r.create("b")
	r.start()
	first, second := r.namespaces[0], r.namespaces[1]
	r.gate.change(func() {
		r.gate.answer = func(request *http.Request) *http.Response {
			if !strings.Contains(request.URL.Path+"/", "/namespaces/"+second+"/") {
				return nil
			}
			return refusal(request, http.StatusForbidden, metav1.StatusReasonForbidden, 0)
		}
	})
	r.gate.cut()
	r.update("b")
	r.update("a.0")
	r.create("c.0")
	r.await("P13", func() string {
		return differ("the cache of the other namespace", r.cached(first), r.world(first))
	})
	r.awaitState(tidings.StateForbidden)
	r.gate.change(func() { r.gate.answer = nil })
	r.agree("P13")
}

func (r *rig) awaitState(state tidings.State) {
	r.Helper()
	r.await("P13", func() string {
		if h := r.informer.Health(); h.State != state {
			return fmt.Sprintf("the health is %+v, want %s", h, state)
		}
		return ""
	})
}

func healthFollows(r *rig) {
	if h := r.informer.Health(); h.State != tidings.StatePending || h.Synced {
		r.Errorf("P13: before Run the health is %+v", h)
	}
	r.create("a")
	r.create("b")
	r.start()
	r.agree("P13")
	r.awaitState(tidings.StateWatching)
	if h := r.informer.Health(); !h.Synced || h.Objects != 2 || h.Version == "" ||
		h.LastEvent.IsZero() {
		r.Errorf("P13: the health is %+v", h)
	}
	r.gate.close()
	r.await("P13", func() string {
		h := r.informer.Health()
		if h.State != tidings.StateBackoff || h.LastError == nil || h.RetryAt.IsZero() ||
			h.Objects != 2 {
			return fmt.Sprintf("cut off from the server, the health is %+v", h)
		}
		return ""
	})
	r.gate.change(func() { r.gate.shut = false })
	r.awaitState(tidings.StateWatching)
	r.update("a")
	r.agree("P13")
}

// readYourWrites writes into every namespace before it waits for the first write: a
// namespace without a later write reaches the version by a bookmark within a minute.
func readYourWrites(r *rig) {
	r.start()
	for i := range 20 {
		var keys, versions []string
		for range r.namespaces {
			name := fmt.Sprintf("object-%d-%d", i, len(keys))
			r.create(name)
			r.mu.Lock()
			versions = append(versions, r.version)
			r.mu.Unlock()
			keys = append(keys, r.key(name))
		}
		ctx, cancel := context.WithTimeout(r.ctx, r.server.Patience)
		if err := r.informer.WaitFor(ctx, versions[0]); err != nil {
			r.Errorf("P14: %v", err)
		}
		cancel()
		if r.get(keys[0]) == "" {
			r.Errorf("P14: WaitFor(%s) has returned, and %s is not cached", versions[0], keys[0])
		}
	}
	ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
	defer cancel()
	if err := r.informer.WaitFor(ctx, r.version+"000"); !errors.Is(err, context.DeadlineExceeded) {
		r.Errorf("P14: waiting for the future: %v", err)
	}
	r.agree("P14")
}

// silenceIsNoticed stalls a connection without closing it.
func silenceIsNoticed(r *rig) {
	r.create("a")
	r.start()
	r.agree("P15")
	defer r.gate.stall()()
	r.update("a")
	r.create("b")
	r.settle()
	if difference := differ("the cache", r.cached(""), r.world("")); difference == "" {
		r.Errorf("P15: the connection is not silent")
	}
	if missing := r.waitUntil(30*time.Minute, func() string {
		return differ("the cache", r.cached(""), r.world(""))
	}); missing != "" {
		r.Errorf("P15: after half an hour of silence %s", missing)
	}
	r.agree("P15")
}

// rewindIsNoticed restores an earlier state, whose versions were given before.
func rewindIsNoticed(r *rig) {
	r.create("a")
	r.create("b")
	r.start()
	r.agree("P16")
	before := r.world("")
	restore, err := r.server.Backup()
	r.must(err)
	for range 20 {
		r.update("a")
	}
	r.remove("b")
	r.create("c")
	r.agree("P16")
	r.witness.Rewind(true)
	r.must(restore())
	r.mu.Lock()
	r.truth = before
	r.mu.Unlock()
	if missing := r.waitUntil(10*time.Minute, func() string {
		return differ("the cache", r.cached(""), before)
	}); missing != "" {
		r.Errorf("P16: ten minutes after the server went back %s", missing)
	}
	r.agree("P16")
}

// watchesAreResumed cuts connections: the informer resumes its watches.
func watchesAreResumed(r *rig) {
	states := []int{r.create("a.0")}
	r.start()
	r.agree("P18")
	lists := r.gate.lists()
	for range 3 {
		r.gate.cut()
		states = append(states, r.update("a.0"), r.update("a.0"))
		r.agree("P18")
	}
	want := []string{fmt.Sprintf("Added %s initial %d", r.key("a.0"), states[0])}
	for i, n := range states[1:] {
		want = append(want, fmt.Sprintf("Updated %s %d→%d", r.key("a.0"), states[i], n))
	}
	r.expect("P18", r.witness.Take(), want...)
	if more := r.gate.lists() - lists; more != 0 {
		r.Errorf("P18: %d lists after connections were lost", more)
	}
}

// retryAfter refuses requests with the header Retry-After.
func retryAfter(r *rig) {
	const seconds = 2
	r.create("a")
	r.start()
	r.update("a")
	r.agree("P18") // the watch has begun, so that there is something to cut
	var mu sync.Mutex
	refused := map[string]time.Time{} // by path
	r.gate.change(func() {
		r.gate.answer = func(request *http.Request) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			path := request.URL.Path
			if at, again := refused[path]; again {
				if waited := time.Since(at); waited < seconds*time.Second {
					r.Errorf("P18: %s was asked again after %v, want %d s at least",
						path, waited, seconds)
				}
				return nil
			}
			refused[path] = time.Now()
			return refusal(request, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
				seconds)
		}
	})
	r.gate.cut()
	r.update("a")
	r.agree("P18")
	mu.Lock()
	defer mu.Unlock()
	if len(refused) == 0 {
		r.Errorf("P18: nothing was refused")
	}
}

// noStorm fails every request for ten minutes.
func noStorm(r *rig) {
	r.create("a")
	r.start()
	r.agree("P18")
	r.refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)
	before := r.gate.sent()
	r.gate.cut()
	time.Sleep(10 * time.Minute)
	watches := max(1, len(r.setting.Namespaces))
	if n := (r.gate.sent() - before) / watches; n < 10 || n > 100 {
		r.Errorf("P18: a watch has sent %d requests in ten minutes of failures, want 10 to 100", n)
	}
	r.gate.change(func() { r.gate.answer = nil })
	r.update("a")
	r.agree("P18")
}

// onlyTheSelection moves objects into and out of the selection, and makes some outside of
// it.
func onlyTheSelection(r *rig) {
	other := map[string]string{labelSuite: "another"}
	r.create("a.0")
	r.must(r.tryCreate(r.key("out.0"), other))
	r.unselect("out.0")
	r.start()
	r.must(r.tryCreate(r.key("late.0"), other))
	r.unselect("late.0")
	r.must(r.tryUpdate(r.key("a.0"), other)) // leaves
	r.unselect("a.0")
	r.update("late.0") // enters
	if r.outside != "" {
		r.must(r.tryCreate(r.outside+"/elsewhere", nil))
		r.mu.Lock()
		delete(r.truth, r.outside+"/elsewhere")
		r.mu.Unlock()
	}
	r.fence()
	r.agree("P20")
	texts := []string{}
	for _, e := range r.witness.Take() {
		if !strings.Contains(e.Key, "/fence-") {
			texts = append(texts, fmt.Sprintf("%v %s", e.Type, e.Key))
		}
	}
	want := []string{
		"Added " + r.key("a.0"), "Deleted " + r.key("a.0"), "Added " + r.key("late.0"),
	}
	if fmt.Sprint(texts) != fmt.Sprint(want) {
		r.Errorf("P20: received %q, want %q", texts, want)
	}
	if h := r.informer.Health(); h.Dropped != 0 {
		r.Errorf("P20: %d objects were dropped, the last: %v", h.Dropped, h.LastDropped)
	}
}

// unselect removes an object from those that the informer should hold.
func (r *rig) unselect(name string) {
	key := r.key(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.truth, key)
}
