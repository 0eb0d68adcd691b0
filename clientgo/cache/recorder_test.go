package cache_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/tools/cache"
)

// recorder is a handler that records its calls: "add default/a 1 initial", "update default/a
// 1→2", "delete default/a 3", "tombstone default/a 2". The numbers are resource versions.
type recorder struct {
	then  func()           // called after each note; nil is nothing
	state func(any) string // describes objects in place of their versions, unless nil

	mu    sync.Mutex // guards the rest
	notes []string
	knows map[string]string // the state of each object by the calls so far
	wrong []string          // calls that contradict knows
}

func (r *recorder) OnAdd(obj any, initial bool) {
	name, state := r.describe(obj)
	note := "add " + strings.TrimSpace(name+" "+state) + map[bool]string{true: " initial"}[initial]
	r.note(note, name, "", state, false, true)
}

func (r *recorder) OnUpdate(old, new any) {
	name, before := r.describe(old)
	_, after := r.describe(new)
	r.note("update "+strings.TrimSpace(name+" "+before)+"→"+after, name, before, after, true, true)
}

func (r *recorder) OnDelete(obj any) {
	if tombstone, ok := obj.(clientgo.DeletedFinalStateUnknown); ok {
		_, state := r.describe(tombstone.Obj)
		r.note("tombstone "+tombstone.Key+" "+state, tombstone.Key, "", "", true, false)
		return
	}
	name, state := r.describe(obj)
	r.note("delete "+strings.TrimSpace(name+" "+state), name, "", "", true, false)
}

// describe returns the name and the state of an object, its type if it has no metadata.
func (r *recorder) describe(obj any) (name, state string) {
	m, ok := obj.(metav1.Object)
	switch {
	case !ok:
		return fmt.Sprintf("%T", obj), ""
	case r.state != nil:
		return clientgo.MetaObjectToName(m).String(), r.state(obj)
	}
	return clientgo.MetaObjectToName(m).String(), m.GetResourceVersion()
}

// note records a call. known reports whether the object must be known before the call, and knows
// whether it is known after it.
func (r *recorder) note(text, name, old, new string, known, knows bool) {
	r.mu.Lock()
	before, was := r.knows[name]
	if was != known || known && knows && old != before {
		r.wrong = append(r.wrong, fmt.Sprintf("%s, but it was known as %q", text, before))
	}
	if r.knows == nil {
		r.knows = map[string]string{}
	}
	if r.knows[name] = new; !knows {
		delete(r.knows, name)
	}
	r.notes = append(r.notes, text)
	r.mu.Unlock()
	if r.then != nil {
		r.then()
	}
}

// story returns the state of each object by the calls so far, and the calls that contradict it.
func (r *recorder) story() (knows map[string]string, wrong []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.knows), r.wrong
}

// take returns the notes since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	notes := r.notes
	r.notes = nil
	return notes
}

// want waits until the bubble is idle, and compares the notes since the last time. The calls
// of different objects may come in any order; those of one object in that of want.
func (r *recorder) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	wantNotes(t, r.take(), want...)
}

func wantNotes(t *testing.T, got []string, want ...string) {
	t.Helper()
	if got, want = byObject(got), byObject(want); !slices.Equal(got, want) {
		t.Errorf("the handler received\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// byObject sorts notes by their objects, because a list has no order.
func byObject(notes []string) []string {
	object := func(note string) string { return strings.SplitN(note, " ", 3)[1] }
	return slices.SortedStableFunc(slices.Values(notes), func(a, b string) int { return strings.Compare(object(a), object(b)) })
}

func nameAndVersion(obj any) string {
	m, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Sprintf("%T", obj)
	}
	return strings.TrimSpace(clientgo.MetaObjectToName(m).String() + " " + m.GetResourceVersion())
}

func versionOf(obj any) string {
	m, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Sprintf("%T", obj)
	}
	return m.GetResourceVersion()
}

// number returns a version as a number.
func number(t *testing.T, version string) int {
	t.Helper()
	n, err := strconv.Atoi(version)
	must(t, err)
	return n
}
