package slot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Holding is the slots that a process holds at present. Collections that are attached to it have the
// objects of these slots alone. Use [NewHolding]; its methods may be called from any goroutine.
type Holding struct {
	key  Key
	held atomic.Pointer[held]

	// adding is held by Add, and leaving while members drop slots, which comes after it. They have
	// room for one token: locks that a context may end the wait for.
	adding, leaving chan struct{}

	mu      sync.Mutex     // guards the rest; held is written under it
	left    Set            // that members may still have; none of them is held
	members map[Member]Set // with the slots that are held, and that the member may lack
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
	// Leave queues the end of the objects of slots that have gone. An error is that of the context.
	Leave(ctx context.Context, slots Set) error
}

// NewHolding returns a holding of some slots.
func NewHolding(key Key, slots Set) *Holding {
	h := &Holding{
		key: key, adding: make(chan struct{}, 1), leaving: make(chan struct{}, 1),
		members: map[Member]Set{},
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

// Add adds slots, and returns when the caches of all informers that are synced have their objects: each
// lists them once, while its watch goes on. The first list of any other informer has them too. After an
// error the slots are held, and some caches may lack their objects: call Add again, which makes only
// these list them, or Remove. One call of Add is at work at a time. Slots that are removed meanwhile
// leave at once.
func (h *Holding) Add(ctx context.Context, slots Set) error {
	select {
	case h.adding <- struct{}{}:
		defer func() { <-h.adding }()
	case <-ctx.Done():
		return fmt.Errorf("add the slots %v: %w", slots, context.Cause(ctx))
	}
	for !h.hold(slots) {
		if err := h.leave(ctx); err != nil {
			return fmt.Errorf("add the slots %v, which have not left yet: %w", slots, err)
		}
	}
	lacking := h.lacking(slots)
	errs := make(chan error, len(lacking))
	for m, lacks := range lacking {
		go func() { errs <- h.merge(ctx, m, lacks) }()
	}
	var err error
	for range lacking {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return fmt.Errorf("add the slots %v: %w", slots, err)
	}
	return nil
}

// lacking returns the members that may lack some of the slots, with these.
func (h *Holding) lacking(slots Set) map[Member]Set {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[Member]Set{}
	for m, lacks := range h.members {
		if some := lacks.Minus(lacks.Minus(slots)); !some.IsEmpty() {
			all[m] = some
		}
	}
	return all
}

// merge has a member list slots that it may lack.
func (h *Holding) merge(ctx context.Context, m Member, slots Set) error {
	if err := m.Merge(ctx, slots); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if lacks, ok := h.members[m]; ok {
		h.members[m] = lacks.Minus(slots)
	}
	return nil
}

// Remove removes slots. From now on informers ignore the changes of their objects; the cached ones
// leave the caches soon, and handlers receive that as deletes that are marked as moved. Remove does
// not wait.
func (h *Holding) Remove(slots Set) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := *h.held.Load()
	now.set = now.set.Minus(slots)
	h.held.Store(&now)
	for m, lacks := range h.members {
		h.members[m] = lacks.Minus(slots)
	}
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
	for m, lacks := range h.members {
		h.members[m] = lacks.Union(come)
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
	for _, m := range h.attached() {
		if err := m.Leave(ctx, left); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = h.left.Minus(left)
	return nil
}

func (h *Holding) attached() (members []Member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m := range h.members {
		members = append(members, m)
	}
	return members
}

// Attach adds a member. It follows the changes until detach is called.
func Attach(h *Holding, m Member) (detach func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members[m] = Set{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.members, m)
	}
}
