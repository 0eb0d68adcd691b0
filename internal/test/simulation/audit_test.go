package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

// quiet is the time after the last fault within which all caches must agree with the server. A
// streamed list that lost its end is given up after its timeout of up to ten minutes and half a
// minute of grace. Failed requests are tried again within a minute. A rewind that only a missing
// object shows takes two watches where there are no bookmarks: one of up to ten minutes and one of
// five.
const quiet = 17 * time.Minute

// settle ends all faults and gives the informers time to come into step.
func (w *world) settle() {
	w.liftAll()
	for _, s := range w.subjects {
		for _, h := range s.checkers {
			h.Unblock()
		}
	}
	w.healAll()
	time.Sleep(quiet)
	synctest.Wait()
	w.collectAdds()
}

// audit compares everything with the server. With lasting it does so during a lasting
// fault.
func (w *world) audit(lasting bool) {
	w.Helper()
	w.note("audit")
	w.settle()
	if lasting {
		defer w.beginLasting()()
	}
	w.totals.counts["audits"]++
	for _, s := range w.subjects {
		w.auditSubject(s)
	}
	w.writeLog.reset()
	for _, s := range w.subjects {
		s.divided, s.renamed = false, false
		if s.scope.slots != nil {
			s.scope.slots.left = tidings.SlotSet{}
		}
	}
}

func (w *world) auditSubject(s *subject) {
	w.Helper()
	want := w.serverState(s.scope)
	health := s.Health()
	w.print(s)
	cache := s.state()
	compared := cache
	if s.refuses {
		compared = maps.Clone(cache)
		for key, is := range want {
			if refusable(follow.Label(is)) {
				delete(want, key)
				delete(compared, key)
			}
		}
	}
	if !maps.Equal(compared, want) {
		w.Errorf("%s: the cache holds\n%v\nthe server\n%v\nhealth %+v",
			s.kind, sorted(compared), sorted(want), health)
	}
	if !health.Synced {
		w.Errorf("%s: not synced: %+v", s.kind, health)
	}
	for key, is := range want {
		keys, err := s.Indexed(follow.Label(is))
		if err != nil || !slices.Contains(keys, key) {
			w.Errorf("%s: the index has %v for %s, without %s: %v", s.kind, keys, is, key, err)
		}
	}
	resumed := s.audited && health.Lists == s.lists && !s.divided && !s.refuses &&
		!w.writeLog.hasGap(s.scope.resource) && !s.code.forget()
	expected := w.writeLog.edges(s.scope)
	for _, h := range s.checkers {
		w.auditChecker(s, h, cache, resumed, expected)
	}
	s.lists, s.audited = health.Lists, true
}

// auditChecker compares the events of a handler with the cache and the writes. resumed means that
// no list has taken the place of events since the last audit.
func (w *world) auditChecker(
	s *subject, h *checker, cache map[string]string, resumed bool, expected map[string][]edge,
) {
	w.Helper()
	name, events := s.kind+", "+h.Name, h.Take()
	last := events[max(0, len(events)-30):]
	for _, wrong := range h.Wrong() {
		w.Errorf("%s: %s; its last events are %v", name, wrong, last)
	}
	if held := h.Held(); !maps.Equal(held, cache) {
		w.Errorf("%s: its events add up to\n%v\nthe cache holds\n%v", name,
			sorted(held), sorted(cache))
	}
	if !isClosed(h.registration.Synced()) {
		w.Errorf("%s: not synced", name)
	}
	w.auditMoves(s, name, events)
	edges, ended := h.edges(events)
	resumed = resumed && h.Policy != tidings.PolicyConflateState
	for _, how := range ended {
		if how == "replaced" {
			w.totals.counts["objects replaced by an update"]++
		} else {
			w.totals.counts["objects deleted"]++
		}
		if how != "deleted" && resumed {
			w.Errorf("%s: an object ended as %s without a list; the last events are %v",
				name, how, last)
		}
	}
	if resumed && h.audited {
		w.totals.counts["handlers compared event by event"]++
		if !maps.EqualFunc(edges, expected, slices.Equal[[]edge]) {
			w.Errorf("%s: adds and deletes it received\n%v\nthe server made\n%v", name,
				sorted(edges), sorted(expected))
		}
	}
	h.audited = true
	h.Rewind(false)
}

func keyOf(obj tidings.Object) string { return source.Key(obj.GetNamespace(), obj.GetName()) }

func splitKey(key string) (namespace, name string) {
	if namespace, name, namespaced := strings.Cut(key, "/"); namespaced {
		return namespace, name
	}
	return "", key
}

// serverState returns the states that the server has of a scope.
func (w *world) serverState(s scope) map[string]string {
	w.Helper()
	objects, _, err := w.server.List(context.Background(), s.resource, "")
	if err != nil {
		w.Fatal(err)
	}
	all := map[string]string{}
	for _, obj := range objects {
		m := obj.(metav1.Object)
		if s.holds(s.resource, m.GetNamespace(), m.GetName(), string(m.GetUID()), m.GetLabels()["n"]) {
			all[keyOf(m)] = follow.StateOf(m)
		}
	}
	return all
}

// sorted shows a map in the order of its keys.
func sorted[V any](m map[string]V) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("  %s: %v", key, m[key]))
	}
	return strings.Join(lines, "\n")
}
