package guard

// Health describes a guard.
type Health struct {
	// Server is the address of the server.
	Server string `json:"server"`
	Stats
}

// Health describes the guard.
func (g *Guard) Health() Health { return Health{g.Host(), g.Stats()} }

// Stats counts the writes that a guard has seen since it was made, by their outcome. Requests that
// store nothing, such as reads, dry runs and reviews, are not counted.
type Stats struct {
	// Sent counts the attempts that were sent, with and without a call.
	Sent uint64 `json:"sent"`
	// Unattributed counts the attempts of Sent without a call, other than events.
	Unattributed uint64 `json:"unattributed,omitzero"`
	// Events counts the attempts of Sent that wrote an event without a call.
	Events uint64 `json:"events,omitzero"`
	// Fenced counts the writes that were not sent, as their term was closed; healthy is 0, except
	// around the end of a term.
	Fenced uint64 `json:"fenced,omitzero"`
	// Interrupted counts the attempts of Sent whose term closed before the answer had come. The
	// server may have applied them.
	Interrupted uint64 `json:"interrupted,omitzero"`
	// Late counts the writes that were refused, as their call had ended; healthy is 0.
	Late uint64 `json:"late,omitzero"`
	// Refused counts the writes that lacked a precondition, or were for another server; healthy
	// is 0.
	Refused uint64 `json:"refused,omitzero"`
	// Shadowed counts the writes that shadow mode has refused.
	Shadowed uint64 `json:"shadowed,omitzero"`
	// Conflicts counts the conflicts of calls, also those over a name that exists already.
	Conflicts uint64 `json:"conflicts,omitzero"`
	// Unknown counts the attempts of calls whose outcome or version was not in the answer.
	Unknown uint64 `json:"unknown,omitzero"`
	// Resolved counts the writes that the server was asked about.
	Resolved uint64 `json:"resolved,omitzero"`
}

// Stats returns the counts up to now.
func (g *Guard) Stats() Stats {
	g.statsMu.Lock()
	defer g.statsMu.Unlock()
	return g.stats
}

func (g *Guard) count(figure *uint64) {
	g.statsMu.Lock()
	defer g.statsMu.Unlock()
	*figure++
}
