package election

import (
	"time"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// State is the present activity of an [Elector].
type State string

// The states.
const (
	// Stopped: Run is not running.
	Stopped State = "Stopped"
	// Standby: the elector waits for the Lease.
	Standby State = "Standby"
	// Leading: lead runs.
	Leading State = "Leading"
	// Draining: the context of lead has ended, and lead has not returned.
	Draining State = "Draining"
)

// Health describes an [Elector].
type Health struct {
	// Lease is the namespace and the name of the Lease.
	Lease string `json:"lease"`
	State State  `json:"state"`
	// Identity is the holder of the present term, or of the next one.
	Identity string `json:"identity"`
	// Holder is the holder that the Lease names, "" without one. Since is the time at which it
	// was first observed. Transitions counts the holders, as the Lease does.
	Holder      string    `json:"holder,omitzero"`
	Since       time.Time `json:"since,omitzero"`
	Transitions int32     `json:"transitions,omitzero"`
	// Renewals counts the renewals of the present term. Remaining is the time for which the term
	// stays open without another renewal. Healthy: half of the duration or more. Both are 0
	// without a term.
	Renewals  int           `json:"renewals,omitzero"`
	Remaining time.Duration `json:"remaining,omitzero"`
	// Polling is the reason why the Lease is read at intervals instead of being watched; nil: it
	// is watched.
	Polling error `json:"-"`
	// Failures counts the requests for the Lease that failed since New.
	Failures uint64 `json:"failures,omitzero"`
	// LastError is the last failure and LastErrorAt its time. They stay after the recovery.
	LastError   error     `json:"-"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
}

// Health describes the elector, and the Lease as it was last observed.
func (e *Elector) Health() Health {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := &e.view
	h := Health{
		Lease: e.o.Namespace + "/" + e.o.Name, State: e.state, Identity: e.identity,
		Holder: lease.HolderOf(v.lease), Since: v.named, Polling: e.follower.Polling(),
	}
	h.Failures, h.LastErrorAt, h.LastError = e.failures.Get()
	if v.lease != nil && v.lease.Spec.LeaseTransitions != nil {
		h.Transitions = *v.lease.Spec.LeaseTransitions
	}
	if t := e.term; t != nil {
		h.Remaining, h.Renewals = t.Remaining(), t.Renewals()
	}
	return h
}

func (e *Elector) enter(s State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = s
}
