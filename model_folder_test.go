package tidings_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/delta"
)

// folder is a handler that folds what it is told, and checks that each event follows
// from the ones before.
type folder struct {
	model        *model
	name         string
	policy       tidings.Policy
	registration *tidings.Registration
	removed      bool

	mu    sync.Mutex // guards the rest
	state map[string]event
	// unended holds the UIDs of objects that it was told of and whose delete it was
	// not told of, ended those whose delete it was told of.
	unended, ended map[string]string // key by UID
	calls          int
	blocked        bool
	gate           chan struct{} // closed when it may go on
	problem        error
}

func newFolder(m *model, name string) *folder {
	return &folder{model: m, name: name, state: map[string]event{}, unended: map[string]string{}, ended: map[string]string{}, gate: make(chan struct{})}
}

func (f *folder) setBlocked(blocked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if blocked == f.blocked {
		return
	}
	f.blocked = blocked
	if blocked {
		f.gate = make(chan struct{})
	} else {
		close(f.gate)
	}
}

func (f *folder) handle(e event) {
	f.mu.Lock()
	gate, blocked := f.gate, f.blocked
	f.mu.Unlock()
	if blocked {
		<-gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	before, known := f.state[e.Key]
	switch {
	case f.problem != nil:
	case known == (e.Type == tidings.Added):
		f.problem = fmt.Errorf("%v, known before: %v", e, known)
	case e.Type == tidings.Updated && !e.Resync && before.New != e.Old:
		f.problem = fmt.Errorf("%v follows from %s, told before was %s", e, e.Old, before.New)
	case e.Type == tidings.Updated && e.Resync && before.New != e.New:
		f.problem = fmt.Errorf("resync with %s, told before was %s", e.New, before.New)
	case e.Type != tidings.Added && !e.Resync && older(e, before):
		f.problem = fmt.Errorf("%v goes back from %s", e, before.New)
	}
	if e.Type == tidings.Deleted {
		delete(f.state, e.Key)
		delete(f.unended, e.OldUID)
		f.ended[e.OldUID] = e.Key
	} else {
		f.state[e.Key] = e
		f.unended[e.NewUID] = e.Key
		delete(f.ended, e.NewUID)
	}
}

func older(e, before event) bool {
	now := version(e.New)
	if e.Type == tidings.Deleted {
		now = version(e.Old)
	}
	order, ok := delta.CompareDecimal(now, version(before.New))
	return ok && order < 0
}

// compareDeletes checks that the handler was told of every delete. Only a list may
// bring another object under a key without a delete, and only ConflateState leaves
// one out.
func (f *folder) compareDeletes(cache map[string]string) {
	for uid, key := range f.ended {
		_, name, _ := strings.Cut(key, "/")
		if f.model.objects[name] && f.model.uids[name] == uid && !f.model.labels {
			f.model.Errorf("%s was told that %s with UID %s is gone, and it exists", f.name, key, uid)
		}
	}
	h := f.model.probe.informer().Health()
	if f.policy == tidings.ConflateState || h.Lists > uint64(max(1, len(h.Namespaces))) {
		return
	}
	f.model.exact++
	for uid, key := range f.unended {
		_, name, _ := strings.Cut(key, "/")
		if _, cached := cache[key]; !cached || f.model.uids[name] != uid {
			f.model.Errorf("%s was not told that %s with UID %s is gone", f.name, key, uid)
		}
	}
}

func (f *folder) compare(cache map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problem != nil {
		f.model.Errorf("%s: %v", f.name, f.problem)
	}
	if f.removed {
		select {
		case <-f.registration.Done():
		default:
			f.model.Errorf("%s was removed and is not done", f.name)
		}
		return
	}
	f.compareDeletes(cache)
	folded := map[string]string{}
	for key, e := range f.state {
		folded[key] = e.New
	}
	if !maps.Equal(folded, cache) {
		f.model.Errorf("%s adds up to %v, the cache holds %v; health %+v", f.name, folded, cache, f.registration.Health())
	}
	if !f.registration.HasSynced() {
		f.model.Errorf("%s is not synced", f.name)
	}
}
