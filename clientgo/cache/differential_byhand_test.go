package cache_test

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgo "k8s.io/client-go/tools/cache"
)

// writeByHand writes to both caches as the program does: the answer of a write of its own, which
// somebody else has followed or not, another state under the same version, or a delete. The events
// of what happened before arrive afterwards.
func (p *pair) writeByHand() {
	p.settle()
	objects := p.writable()
	if len(objects) == 0 {
		return
	}
	p.arriving.Lock()
	defer p.arriving.Unlock()
	m := objects[p.random.IntN(len(objects))]
	way := p.random.IntN(5)
	p.byHand = true
	p.note("by hand, way %d, %s", way, keyOf(m))
	change := func() *corev1.ConfigMap {
		n, _ := strconv.Atoi(labelOf(m))
		m.Labels = map[string]string{"n": strconv.Itoa((n + 1 + p.random.IntN(4)) % 5)}
		made, err := p.server.Update(p.t.Context(), m)
		must(p.t, err)
		m = made.(*corev1.ConfigMap).DeepCopy()
		return made.(*corev1.ConfigMap)
	}
	// cached returns an object as both hold it: an update of an equal version whose objects differ
	// is a change here, and none for client-go.
	cached := func(m *corev1.ConfigMap) any {
		m = m.DeepCopy()
		m.TypeMeta = metav1.TypeMeta{}
		if p.change == nil {
			return m
		}
		made, err := p.change(m)
		must(p.t, err)
		return made
	}
	store := func(write func(s clientgo.Store) error) {
		for _, s := range []*subject{p.theirs, p.ours} {
			must(p.t, write(s.informer.GetStore()))
		}
	}
	switch way {
	case 0, 1: // somebody else changes the object before, and after
		change()
		mine := change()
		store(func(s clientgo.Store) error { return s.Update(cached(mine)) })
		if way == 1 {
			change()
		}
	case 2: // the answer of a create
		p.createNext()
		all := p.writable()
		mine := all[p.random.IntN(len(all))]
		store(func(s clientgo.Store) error { return s.Add(cached(mine)) })
	case 3:
		store(func(s clientgo.Store) error { return s.Delete(cached(m)) })
		if p.random.IntN(2) == 0 {
			change()
		} else {
			p.remove(m)
		}
	case 4: // another state, before an event
		other := m.DeepCopy()
		other.Labels = map[string]string{"n": "by hand"}
		store(func(s clientgo.Store) error { return s.Update(cached(other)) })
		change()
	}
}

// heldBack is a transport that holds back what arrives while the lock is held.
type heldBack struct {
	http.RoundTripper
	arriving *sync.RWMutex
}

func (h heldBack) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := h.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = heldBody{answer.Body, h.arriving}
	}
	return answer, err
}

// heldBody is the body of an answer of a [heldBack].
type heldBody struct {
	io.ReadCloser
	arriving *sync.RWMutex
}

func (b heldBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.arriving.RLock()
	defer b.arriving.RUnlock()
	return n, err
}

// writable returns the objects that writeByHand may write to the caches. In a rough schedule these
// are those that the informers select: others would be cached until the next list, and only
// client-go lists again.
func (p *pair) writable() []*corev1.ConfigMap {
	return slices.DeleteFunc(p.list(), func(m *corev1.ConfigMap) bool {
		return p.manner == rough && (p.namespace != "" && m.Namespace != p.namespace || !p.selector.Matches(labels.Set(m.Labels)))
	})
}
