package view

import (
	"fmt"
	"strings"
	"time"
)

// Status is what the status line says.
type Status struct {
	// Types and Objects are how many types and cached objects there are.
	Types   int
	Objects int64
	// Version is the highest resource version that a cache reflects, "" if none.
	Version string
	// Lag is how long ago a change was made when the cache got it; it is known
	// where HasLag says so.
	Lag    time.Duration
	HasLag bool
	// Rate is how many changes there are a second.
	Rate float64
	// Heap is how much memory this process holds.
	Heap uint64
	// Left is how long it goes on, 0 for no end.
	Left time.Duration
	// Goal says what is waited for, "" for nothing.
	Goal string
	// Trouble names what is not well, "" if nothing is.
	Trouble string
}

// Line renders the status.
func (s Status) Line(p Palette) string {
	parts := []string{Counted(int64(s.Types), "type", "types"), Counted(s.Objects, "object", "objects")}
	if s.Version != "" {
		parts = append(parts, "RV "+Printable(s.Version))
	}
	if s.HasLag {
		parts = append(parts, "lag "+Short(s.Lag))
	}
	parts = append(parts, fmt.Sprintf("%.0f events/s", s.Rate), "heap "+Bytes(s.Heap))
	if s.Left > 0 {
		parts = append(parts, Short(s.Left.Round(time.Second))+" left")
	}
	if s.Goal != "" {
		parts = append([]string{Printable(s.Goal)}, parts...)
	}
	line := p.Dim("── ") + p.Bold(strings.Join(parts, " · "))
	if s.Trouble != "" {
		line += " · " + p.Bad(Printable(s.Trouble))
	}
	return line
}
