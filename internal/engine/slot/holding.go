package slot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Holding is the slots that a process holds at present. Collections that are attached to it have the
// objects of these slots alone. Use [NewHolding]; its methods may be called from any goroutine.
type Holding struct {
	key  Key
	held atomic.Pointer[held]

	// leaving is held while members drop slots. It has room for one token: a lock that a context may
	// end the wait for.
	leaving chan struct{}

	mu      sync.Mutex // guards the rest; held is written under it
	left    Set        // that members may still have; none of them is held
	members map[Member]struct{}
	gone    [Entries]uint64 // the number of the last removal of each slot, from 1 on
}

// held is a state of a holding.
type held struct {
	set           Set
	adds, removes uint64 // so far
}

// Member is a collection of the objects in the slots of a holding.
type Member interface {
	// Merge returns when the objects of slots that have come are cached, as far as the member lacks
	// them.
	Merge(ctx context.Context, slots Set) error
	// Leave queues the end of the objects of slots that have gone. An error is that of the context.
	Leave(ctx context.Context, slots Set) error
}

// NewHolding returns a holding of some slots.
func NewHolding(key Key, slots Set) *Holding {
	h := &Holding{
		key: key, leaving: make(chan struct{}, 1), members: map[Member]struct{}{},
	}
	h.held.Store(&held{set: slots})
	return h
}

// Key returns the key by which the objects are divided.
func (h *Holding) Key() Key { return h.key }

// Slots returns the slots that are held.
func (h *Holding) Slots() Set { return h.held.Load().set }

// Adds counts the calls of Add that have added slots. A list that began before the last one may lack
// objects.
func (h *Holding) Adds() uint64 { return h.held.Load().adds }

// GoneSince returns the slots that have gone after a number of removals, also those that have come back,
// and the number of removals so far.
func (h *Holding) GoneSince(removes uint64) (gone Set, now uint64) {
	if h.held.Load().removes == removes {
		return Set{}, removes
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, at := range h.gone {
		if at > removes {
			gone.Add(n)
		}
	}
	return gone, h.held.Load().removes
}

// Has reports whether the slot of an object with a UID and a namespace is held, as [Key.In] does.
func (h *Holding) Has(uid, namespace string) bool { return h.key.In(h.Slots(), uid, namespace) }

// ErrNoNamespace is an object without a namespace where objects are divided by that, and ErrNoUID the
// result of a transform without the UID that they are divided by, or with another one.
var (
	ErrNoNamespace = errors.New("the slots are divided by namespace, and the object has none: " +
		"divide them by UID")
	ErrNoUID = errors.New("it removed or changed the uid, by which objects are divided into slots: keep it")
)

// Check returns an error for an object that has no slot.
func (h *Holding) Check(namespace string) error {
	if h.key == Namespace && namespace == "" {
		return ErrNoNamespace
	}
	return nil
}

// Add adds slots, and returns when the caches of all informers have their objects: each lists them
// once, while its watch goes on. A namespace that was not listed yet is not waited for, as its first
// list has them too. A list that fails is made again, also when Add has returned the error, or its
// context has ended, until the slots are removed: so the caches come to have the objects in any case.
// Slots that are removed meanwhile leave at once.
func (h *Holding) Add(ctx context.Context, slots Set) error {
	for !h.hold(slots) {
		if err := h.leave(ctx); err != nil {
			return fmt.Errorf("add the slots %v, which have not left yet: %w", slots, err)
		}
	}
	if err := h.each(func(m Member) error { return m.Merge(ctx, slots) }); err != nil {
		return fmt.Errorf("add the slots %v: %w", slots, err)
	}
	return nil
}

// each calls f for all members at once, and joins the errors.
func (h *Holding) each(f func(Member) error) (err error) {
	members := h.attached()
	errs := make(chan error, len(members))
	for _, m := range members {
		go func() { errs <- f(m) }()
	}
	for range members {
		err = errors.Join(err, <-errs)
	}
	return err
}

// Remove removes slots. From now on informers ignore the changes of their objects; the cached ones
// leave the caches soon, and handlers receive that as deletes that are marked as moved. Remove does
// not wait.
func (h *Holding) Remove(slots Set) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := *h.held.Load()
	now.set = now.set.Minus(slots)
	now.removes++
	for n := range slots.Slots() {
		h.gone[n] = now.removes
	}
	h.held.Store(&now)
	h.left = h.left.Union(slots)
	// It ends when the handlers that informers wait for have made room.
	go h.leave(context.Background()) //nolint:errcheck // the context does not end
}

// hold adds slots to those that are held, and reports whether it could: members may still have some.
func (h *Holding) hold(slots Set) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left.Minus(slots) != h.left {
		return false
	}
	now := *h.held.Load()
	come := slots.Minus(now.set)
	if come.IsEmpty() {
		return true
	}
	now.set = now.set.Union(come)
	now.adds++
	h.held.Store(&now)
	return true
}

// leave makes the members drop the slots that have gone.
func (h *Holding) leave(ctx context.Context) error {
	select {
	case h.leaving <- struct{}{}:
		defer func() { <-h.leaving }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h.mu.Lock()
	left := h.left
	h.mu.Unlock()
	if left.IsEmpty() {
		return nil
	}
	if err := h.each(func(m Member) error { return m.Leave(ctx, left) }); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = h.left.Minus(left)
	return nil
}

func (h *Holding) attached() []Member {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.members))
}

// Attach adds a member. It follows the changes until detach is called.
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
