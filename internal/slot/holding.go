package slot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Holding is the slots that a process holds at present. Collections that are attached to it have the
// objects of these slots alone. Use [NewHolding]; its methods may be called from any goroutine.
type Holding struct {
	key  Key
	held atomic.Pointer[held]

	changing chan struct{} // has room for one token: a lock that a context may end the wait for
	mu       sync.Mutex    // guards the rest
	left     Set           // that collections may still have
	members  map[Member]struct{}
}

// held is a state of a holding.
type held struct {
	set  Set
	adds uint64 // additions so far
}

// Member is a collection of the objects in the slots of a holding.
type Member interface {
	// Merge returns when the objects of slots that have come are cached.
	Merge(ctx context.Context, slots Set) error
	// Leave queues the end of the objects of slots that have gone.
	Leave(slots Set)
}

// NewHolding returns a holding of some slots.
func NewHolding(key Key, slots Set) *Holding {
	h := &Holding{key: key, changing: make(chan struct{}, 1), members: map[Member]struct{}{}}
	h.held.Store(&held{set: slots})
	return h
}

// Key returns what the objects are divided by.
func (h *Holding) Key() Key { return h.key }

// Slots returns the slots that are held.
func (h *Holding) Slots() Set { return h.held.Load().set }

// Adds counts the calls of Add. A list that began before the last one may lack objects.
func (h *Holding) Adds() uint64 { return h.held.Load().adds }

// Has reports whether the slot of an object with a UID and a namespace is held. An object without a
// namespace, divided by it, has no slot; Has reports true, so that what reads it can say so.
func (h *Holding) Has(uid, namespace string) bool {
	if h.key == Namespace && namespace == "" {
		return true
	}
	return h.held.Load().set.Has(h.key.Of(uid, namespace))
}

// ErrNoNamespace is an object without a namespace where objects are divided by that, and ErrNoUID the
// result of a transform without the UID that they are divided by.
var (
	ErrNoNamespace = errors.New("the slots are divided by namespace, and the object has none: " +
		"divide them by UID")
	ErrNoUID = errors.New("it removed the uid, by which objects are divided into slots: keep it")
)

// Check returns an error for an object that has no slot.
func (h *Holding) Check(namespace string) error {
	if h.key == Namespace && namespace == "" {
		return ErrNoNamespace
	}
	return nil
}

// Add adds slots, and returns when the caches of all informers that run have their objects: each
// lists them once, while its watch goes on. The first list of an informer that starts later has
// them. After an error the slots are held, and the caches may have a part of their objects: call Add
// again, or Remove. One call of Add is at work at a time.
func (h *Holding) Add(ctx context.Context, slots Set) error {
	select {
	case h.changing <- struct{}{}:
		defer func() { <-h.changing }()
	case <-ctx.Done():
		return fmt.Errorf("add the slots %v: %w", slots, context.Cause(ctx))
	}
	h.leave() // before they may come again
	h.change(func(now *held) {
		now.set = now.set.Union(slots)
		now.adds++
	})
	members := h.attached()
	errs := make([]error, len(members))
	var merging sync.WaitGroup
	for i, m := range members {
		merging.Go(func() { errs[i] = m.Merge(ctx, slots) })
	}
	merging.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("add the slots %v: %w", slots, err)
	}
	return nil
}

// Remove removes slots. From now on informers ignore the changes of their objects; the cached ones
// leave the caches soon, and handlers receive that as deletes that are marked as moved. Remove does
// not wait.
func (h *Holding) Remove(slots Set) {
	h.mu.Lock()
	h.left = h.left.Union(slots)
	h.mu.Unlock()
	h.change(func(now *held) { now.set = now.set.Minus(slots) })
	go func() { // it ends when the handlers that informers wait for have made room
		h.changing <- struct{}{}
		defer func() { <-h.changing }()
		h.leave()
	}()
}

// change replaces the state.
func (h *Holding) change(f func(*held)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := *h.held.Load()
	f(&now)
	h.held.Store(&now)
}

// leave has the members drop the slots that have gone. The caller holds changing.
func (h *Holding) leave() {
	h.mu.Lock()
	left := h.left
	h.left = Set{}
	h.mu.Unlock()
	if left.IsEmpty() {
		return
	}
	for _, m := range h.attached() {
		m.Leave(left)
	}
}

func (h *Holding) attached() (members []Member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m := range h.members {
		members = append(members, m)
	}
	return members
}

// Attach adds a member, which is told of changes until detach is called.
func Attach(h *Holding, m Member) (detach func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members[m] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.members, m)
	}
}

// NamespaceOf returns the namespace in a key, which is namespace/name or a name alone.
func NamespaceOf(key string) string {
	namespace, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return namespace
}
