package sharedinformer

// lock is a mutex that is a channel: index functions run under it, and in a bubble of
// testing/synctest time has to go on while somebody waits for one that sleeps.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

// Lock takes the lock, which waits for the one that has it.
func (l lock) Lock() { l <- struct{}{} }

// Unlock gives it back.
func (l lock) Unlock() { <-l }
