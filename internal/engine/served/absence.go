package served

import "time"

const (
	// leastAbsence is the time for which a server must answer that it has no such resource before this is
	// believed. One that starts, or one of several that has not seen a definition yet, answers so for a
	// moment.
	leastAbsence = time.Minute
	// mostApart is the longest time between two answers that count as one absence.
	mostApart = 10 * time.Minute
)

// Absence is the time for which a server has answered that it has no such resource. An answer that is
// another one ends it: then set it to the zero value.
type Absence struct{ since, last time.Time }

// Lasts records that the server has answered at now that it has no such resource, and reports whether it
// has answered so for a minute.
func (a *Absence) Lasts(now time.Time) bool {
	if a.since.IsZero() || now.Sub(a.last) > mostApart {
		a.since = now
	}
	a.last = now
	return now.Sub(a.since) >= leastAbsence
}
