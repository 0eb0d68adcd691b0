package tidings_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// record is a handler that notes what it is told.
type record struct {
	mu     sync.Mutex
	events []event
}

func (r *record) handle(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// take returns the events since the last call.
func (r *record) take() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

func (r *record) texts() []string {
	var texts []string
	for _, e := range r.take() {
		texts = append(texts, e.String())
	}
	return texts
}

// expect compares what a handler was told.
func expect(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("told\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}
