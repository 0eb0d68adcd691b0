package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/shard"
)

const (
	// Duration is the duration of the Leases of a demonstration, short so that a crash is found
	// soon.
	Duration = 5 * time.Second

	period = time.Second
	// quietPeriods is the number of periods after which a line is printed without a change.
	quietPeriods = 10
	// maxSlots is the number of characters of a set of slots that are printed.
	maxSlots = 40
)

// Group prints the changes of the slots of replicas. All fields but Rest are required.
type Group struct {
	// Lease is the namespace and the name of the Lease with the map, and Duration that of the
	// Leases.
	Lease    string
	Duration time.Duration
	Replicas []*Process
	// Print prints a line.
	Print func(line string) error
	// Rest returns the end of the line about all replicas.
	Rest func(ctx context.Context) (string, error)

	owners [shard.Count]string
	lost   time.Time // when a replica has ended unasked, until all slots are covered
	last   string    // slots by owner and by cover of the last line
	quiet  int       // periods since it was printed
	err    error     // of Print
}

func (g *Group) printf(format string, arguments ...any) {
	if g.err == nil {
		g.err = g.Print(fmt.Sprintf(format, arguments...))
	}
}

// Follow prints the changes until ctx ends, or until the last replica ends, which is an error.
func (g *Group) Follow(ctx context.Context) error {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := g.report(ctx); err != nil {
			return err
		}
		if !slices.ContainsFunc(g.Replicas, func(p *Process) bool { return !p.hasEnded() }) {
			return errors.New("no replica is left")
		}
	}
}

// End ends one replica after the other, so that each hands its slots over, and the last one
// releases its Lease. It ends all of them also if one fails.
func (g *Group) End(ctx context.Context) (err error) {
	for _, p := range g.Replicas {
		if p.hasEnded() {
			continue
		}
		g.printf("replica %s is asked to end", p.Name)
		p.stop()
		p.told = true
		if p.err != nil {
			err = errors.Join(err, fmt.Errorf("replica %s: %w", p.Name, p.err))
		}
		err = errors.Join(err, g.report(ctx))
	}
	return err
}

// report prints the changes since the last report.
func (g *Group) report(ctx context.Context) error {
	for _, p := range g.Replicas {
		if p.hasEnded() && !p.told {
			p.told = true
			g.printf("replica %s has ended (%v): others wait for its Lease, %v since its last renewal",
				p.Name, p.command.ProcessState, g.Duration)
			g.lost = time.Now()
		}
	}
	parts, steady, c, moved := g.ask(ctx)
	if c == nil {
		return g.err
	}
	if g.Rest != nil {
		rest, err := g.Rest(ctx)
		if err != nil {
			return err
		}
		parts[len(parts)-1] += rest
	}
	if c.covered == shard.Count && !g.lost.IsZero() {
		g.printf("all slots are covered again, after %.1fs", time.Since(g.lost).Seconds())
		g.lost = time.Time{}
	}
	// While slots move each second, the moves are enough.
	line := strings.Join(steady, "; ")
	if line != g.last && !moved || g.quiet >= quietPeriods {
		g.last, g.quiet = line, 0
		g.printf("%s", strings.Join(parts, " | "))
	}
	g.quiet++
	return g.err
}

// ask asks the replicas, and returns their figures with and without those that always change. The
// cover is nil if it is not known. It prints moves, and reports whether there are any.
func (g *Group) ask(ctx context.Context) (parts, steady []string, c *cover, moved bool) {
	for _, p := range g.Replicas {
		if p.hasEnded() {
			continue
		}
		f, err := p.ask(ctx, g.Lease)
		if err != nil {
			parts, steady = append(parts, p.Name+" does not answer"), append(steady, p.Name)
			continue
		}
		if c == nil && len(f.Slots) > 0 {
			moved = g.printMoves(f.Slots)
			c = g.coverOf(f.Slots)
		}
		part := fmt.Sprintf("%s %d slots", p.Name, f.Groups[0].Owned)
		steady = append(steady, part)
		parts = append(parts, part+", "+f.String())
	}
	if c == nil {
		return parts, steady, nil, moved
	}
	return append(parts, c.String()), append(steady, c.String()), c, moved
}

// cover counts the slots that a member calls for, and the others.
type cover struct {
	covered, nobody, notReady int
	waiting                   map[string]int // for the Lease of a replica that has ended
}

// coverOf returns the cover of the slots. A member learns of an end from the Lease, and this
// process before.
func (g *Group) coverOf(entries []shard.Entry) *cover {
	c := &cover{waiting: map[string]int{}}
	for _, e := range entries {
		owner := g.replicaOf(e.Owner)
		hasEnded := slices.ContainsFunc(g.Replicas, func(p *Process) bool { return p.Name == owner && p.hasEnded() })
		switch {
		case e.Controller != "":
		case hasEnded:
			c.waiting[owner]++
		case e.Cover == shard.Nobody:
			c.nobody++
		case e.Cover == shard.NotReady:
			c.notReady++
		default:
			c.covered++
		}
	}
	return c
}

func (c *cover) String() string {
	parts := []string{fmt.Sprintf("%d of %d slots covered", c.covered, shard.Count)}
	for _, name := range slices.Sorted(maps.Keys(c.waiting)) {
		parts = append(parts, fmt.Sprintf("%d wait for the Lease of %s", c.waiting[name], name))
	}
	if c.notReady > 0 {
		parts = append(parts, fmt.Sprintf("%d are not ready", c.notReady))
	}
	if c.nobody > 0 {
		parts = append(parts, fmt.Sprintf("%d have nobody", c.nobody))
	}
	return strings.Join(parts, ", ")
}

// printMoves prints which slots have other owners than before, and reports whether any has.
func (g *Group) printMoves(entries []shard.Entry) bool {
	type move struct{ from, to string }
	moved := map[move]shard.Set{}
	for _, e := range entries {
		if owner := g.replicaOf(e.Owner); e.Controller == "" && owner != g.owners[e.Slot] {
			m := move{g.owners[e.Slot], owner}
			slots := moved[m]
			slots.Add(e.Slot)
			moved[m], g.owners[e.Slot] = slots, owner
		}
	}
	byNames := func(x, y move) int {
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to))
	}
	for _, m := range slices.SortedFunc(maps.Keys(moved), byNames) {
		slots := moved[m]
		text := slots.String()
		if len(text) > maxSlots {
			text = text[:maxSlots] + "…"
		}
		g.printf("%s → %s: slots %s (%d)", cmp.Or(m.from, "nobody"), m.to, text, slots.Len())
	}
	return len(moved) > 0
}

// replicaOf returns the name of the replica that a member of the group is.
func (g *Group) replicaOf(member string) string {
	_, name, _ := strings.Cut(g.Lease, "/")
	identity := strings.TrimPrefix(member, name+".")
	if i := strings.LastIndex(identity, "-"); i >= 0 {
		return identity[:i]
	}
	return identity
}
