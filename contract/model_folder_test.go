package contract_test

import (
	"maps"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// model is the informer that a folder follows.
type model struct{ *world }

// folder is a handler that is compared with the cache.
type folder struct {
	follow.Follower
	model        *model
	name         string
	registration *tidings.Registration
	removed      bool
}

func newFolder(m *model, name string) *folder { return &folder{model: m, name: name} }

func (f *folder) handle(e event) { f.Handle(e) }

func (f *folder) setBlocked(blocked bool) {
	if blocked {
		f.Block()
	} else {
		f.Unblock()
	}
}

// compare checks that the events add up to the cache. Only a list may bring another object
// under a key without a delete.
func (f *folder) compare(cache map[string]string) {
	for _, wrong := range f.Wrong() {
		f.model.Errorf("%s: %s", f.name, wrong)
	}
	if f.removed {
		select {
		case <-f.registration.Done():
		default:
			f.model.Errorf("%s was removed and is not done", f.name)
		}
		return
	}
	if held := f.Held(); !maps.Equal(held, cache) {
		f.model.Errorf("%s adds up to %v, the cache holds %v; health %+v",
			f.name, held, cache, f.registration.Health())
	}
	h := f.model.health()
	if n := f.Replaced(); n > 0 && h.Lists <= uint64(max(1, len(h.Namespaces))) {
		f.model.Errorf("%s has not received %d deletes", f.name, n)
	}
	if !f.registration.HasSynced() {
		f.model.Errorf("%s is not synced", f.name)
	}
}
