package engine

// Lock is a mutex that is a channel. In a bubble of testing/synctest, time goes on while
// somebody waits for a Lock whose owner sleeps.
type Lock chan struct{}

// NewLock returns an unlocked Lock.
func NewLock() Lock { return make(Lock, 1) }

// Lock locks l.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock unlocks l.
func (l Lock) Unlock() { <-l }
