package cache_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/tools/cache"
)

// recorder is a handler that takes notes in short words: "add default/a 1 initial",
// "update default/a 1→2", "delete default/a 3", "tombstone default/a 2". The numbers
// are resource versions.
type recorder struct {
	mu    sync.Mutex // guards notes
	notes []string
	then  func() // called after each note; nil is nothing
}

func (r *recorder) OnAdd(obj any, initial bool) {
	note := "add " + nameAndVersion(obj)
	if initial {
		note += " initial"
	}
	r.note(note)
}

func (r *recorder) OnUpdate(old, new any) {
	r.note(fmt.Sprintf("update %s→%s", nameAndVersion(old), versionOf(new)))
}

func (r *recorder) OnDelete(obj any) {
	if tombstone, ok := obj.(clientgo.DeletedFinalStateUnknown); ok {
		r.note("tombstone " + tombstone.Key + " " + versionOf(tombstone.Obj))
		return
	}
	r.note("delete " + nameAndVersion(obj))
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	r.notes = append(r.notes, text)
	r.mu.Unlock()
	if r.then != nil {
		r.then()
	}
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
	object := func(note string) string { return strings.SplitN(note, " ", 3)[1] }
	byObject := func(a, b string) int { return strings.Compare(object(a), object(b)) }
	got, want = slices.Clone(got), slices.Clone(want)
	slices.SortStableFunc(got, byObject)
	slices.SortStableFunc(want, byObject)
	if !slices.Equal(got, want) {
		t.Errorf("the handler was told\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
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
