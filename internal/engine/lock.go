package engine

// Lock is a mutex made of a channel. In a bubble of testing/synctest, time goes on while a
// goroutine waits for a Lock whose holder sleeps.
type Lock chan struct{}

// NewLock returns an unlocked Lock.
func NewLock() Lock { return make(Lock, 1) }

// Lock locks l.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock unlocks l.
func (l Lock) Unlock() { <-l }
