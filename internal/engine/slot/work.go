package slot

import "time"

// Calls describes the calls of one entry.
type Calls struct {
	// Opened reports that calls were made since the entry was served.
	Opened bool
	// Running counts the calls that run, and the writes of calls that have no answer and may still
	// be applied. Oldest is the begin of the oldest one.
	Running int
	Oldest  time.Time
	// Known reports that the caches show all writes, up to Versions. These include the versions
	// that the entry waited for when it was served.
	Known    bool
	Versions map[string]string
}

// Work is what the controllers of a process tell of their work on entries.
type Work struct {
	// Started reports that all controllers run. Before, no entries are given to the member, for a
	// minute at most.
	Started bool
	// Controllers are the names of those that this process can lead as a whole. The list grows at
	// its end alone. A group has at most [MaxControllers].
	Controllers []string
	// Lacks are the names of the controllers, with slots or led as a whole, that this process
	// cannot serve at present: they have ended, or their types cannot be listed and watched.
	Lacks []string
	// Ready are the served entries that are called for: their caches are filled, in contact with
	// the server, and have reached the versions.
	Ready Set
	// Late are the entries of Ready with a key that has waited longer than a bound.
	Late Set
	// Reasons tell why served entries, or those that are being warmed, are not ready.
	Reasons map[string]Set
	// Objects counts the objects of the entries of Ready.
	Objects [Entries]int
	// Pages counts the pages of lists that have come. A list without one for a minute has failed.
	Pages uint64
	// Hung reports that no call of some controller has ended for ten minutes while keys wait.
	Hung bool
	// Blocked is why the work of this process stands still, so that others should take it over: nil
	// if it does not. The member's Lease is not renewed then.
	Blocked error
}
