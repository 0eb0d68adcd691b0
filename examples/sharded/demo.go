package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/shard"
)

const (
	demoLease  = 5 * time.Second
	lookPeriod = time.Second
	// quietLooks is after how many of them a line is printed though no slot has moved.
	quietLooks = 10
	// maxSlots is how many characters of a set of slots are printed.
	maxSlots = 40
)

// demo is three replicas beside a server, and what was printed of them.
type demo struct {
	*cluster
	flags
	out      io.Writer
	replicas []*process

	told   map[*process]bool // that it has ended
	owners [shard.Count]string
	lost   time.Time // when a replica has ended unasked, until all slots are covered
	last   string    // line about the replicas, but for the calls
	quiet  int       // looks since it was printed
}

// runDemo runs three replicas until ctx ends. It starts none again.
func (f *flags) runDemo(ctx context.Context) error {
	cluster, err := newCluster(ctx)
	if err != nil {
		return err
	}
	defer cluster.Close() //nolint:errcheck // the program ends
	d := &demo{cluster: cluster, flags: *f, out: os.Stdout, told: map[*process]bool{}}
	d.lease = cmp.Or(d.lease, demoLease)
	if err = d.start(); err == nil {
		d.greet()
		changed := make(chan error, 1)
		go func() { changed <- cluster.change(ctx) }() // ends with the program
		err = d.follow(ctx, changed)
	}
	return errors.Join(err, d.end(context.WithoutCancel(ctx)))
}

func (d *demo) start() error {
	for _, name := range []string{"a", "b", "c"} {
		arguments := []string{
			"-server", d.url, "-namespace", d.namespace, "-lease", d.lease.String(),
		}
		if d.isVerbose {
			arguments = append(arguments, "-v")
		}
		p, err := startProcess(name, arguments...)
		if err != nil {
			return err
		}
		d.replicas = append(d.replicas, p)
	}
	return nil
}

func (d *demo) greet() {
	d.printf("The API server is at %s. It has %d ConfigMaps in %d namespaces.\n",
		d.url, teams*perTeam, teams)
	for _, p := range d.replicas {
		d.printf("Replica %s is process %d, with pages at %s\n", p.name, p.command.Process.Pid, p.pages)
	}
	d.printf("End one and see its slots move: kill -9 %d\n", d.replicas[0].command.Process.Pid)
	d.printf("Ask the Leases: go run ./cmd/tidings shards %s/%s --server %s\n",
		d.namespace, name, d.url)
	d.printf("Ctrl-C ends all.\n\n")
}

func (d *demo) printf(format string, arguments ...any) { fmt.Fprintf(d.out, format, arguments...) }

// tellf prints a line with the time.
func (d *demo) tellf(format string, arguments ...any) {
	d.printf("%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, arguments...))
}

// follow prints what changes until ctx ends, or the last replica does.
func (d *demo) follow(ctx context.Context, changed <-chan error) error {
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-changed:
			return err
		case <-ticker.C:
		}
		if err := d.look(ctx); err != nil {
			return err
		}
		if !slices.ContainsFunc(d.replicas, func(p *process) bool { return !p.hasEnded() }) {
			return errors.New("no replica is left")
		}
	}
}

// look prints what has changed since the last look.
func (d *demo) look(ctx context.Context) error {
	defer d.ForgetRequests()
	for _, p := range d.replicas {
		if p.hasEnded() && !d.told[p] {
			d.told[p] = true
			d.tellf("replica %s has ended (%v): others wait for its Lease, %v since its last renewal",
				p.name, p.command.ProcessState, d.lease)
			d.lost = time.Now()
		}
	}
	parts, steady, covered := d.ask(ctx)
	if covered < 0 {
		return nil
	}
	waiting, err := d.waiting(ctx)
	if err != nil {
		return err
	}
	if covered == 1 && !d.lost.IsZero() && !d.ownedByEnded() {
		d.tellf("all slots are covered again, after %.1fs", time.Since(d.lost).Seconds())
		d.lost = time.Time{}
	}
	steady = append(steady, fmt.Sprint(covered))
	if line := strings.Join(steady, "; "); line != d.last || d.quiet >= quietLooks {
		d.last, d.quiet = line, 0
		d.tellf("%s | %.0f of %d slots covered, %d ConfigMaps wait", strings.Join(parts, " | "),
			covered*shard.Count, shard.Count, waiting)
	}
	d.quiet++
	return nil
}

// ask returns what the replicas say, with and without the calls, and the share of slots that are
// covered; below 0 is not known. It prints moves.
func (d *demo) ask(ctx context.Context) (parts, steady []string, covered float64) {
	covered = -1
	for _, p := range d.replicas {
		if p.hasEnded() {
			continue
		}
		f, err := p.ask(ctx, d.namespace+"/"+name)
		if err != nil {
			parts, steady = append(parts, p.name+" does not answer"), append(steady, p.name)
			continue
		}
		group := f.Groups[0]
		if covered < 0 && len(f.Slots) > 0 {
			d.moves(f.Slots)
			covered = group.Covered
		}
		part := fmt.Sprintf("%s %d slots, %d objects", p.name, group.Owned, f.Informers[0].Health.Objects)
		steady = append(steady, part)
		parts = append(parts, fmt.Sprintf("%s, %d calls", part, f.Controllers[0].Health.Calls))
	}
	return parts, steady, covered
}

// ownedByEnded reports whether the map still has a replica that has ended.
func (d *demo) ownedByEnded() bool {
	return slices.ContainsFunc(d.replicas, func(p *process) bool {
		return p.hasEnded() && slices.Contains(d.owners[:], p.name)
	})
}

// moves prints which slots have other owners than before.
func (d *demo) moves(entries []shard.Entry) {
	type move struct{ from, to string }
	moved := map[move]shard.Set{}
	for _, e := range entries {
		if owner := nameOf(e.Owner); owner != d.owners[e.Slot] {
			m := move{d.owners[e.Slot], owner}
			slots := moved[m]
			slots.Add(e.Slot)
			moved[m], d.owners[e.Slot] = slots, owner
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
		if m.from == "" {
			m.from = "nobody"
		}
		d.tellf("%s → %s: slots %s (%d)", m.from, m.to, text, slots.Len())
	}
}

// end ends one replica after the other, so that each hands its slots over, and the last one
// releases its Lease.
func (d *demo) end(ctx context.Context) error {
	d.printf("\n")
	for _, p := range d.replicas {
		if p.hasEnded() {
			continue
		}
		d.tellf("replica %s is asked to end", p.name)
		p.stop()
		d.told[p] = true
		if p.err != nil {
			return fmt.Errorf("replica %s: %w", p.name, p.err)
		}
		if err := d.look(ctx); err != nil {
			return err
		}
	}
	held, err := d.held(ctx, d.namespace)
	if err == nil && len(held) > 0 {
		err = fmt.Errorf("the Leases %s are not released", strings.Join(held, ", "))
	}
	if err == nil {
		d.tellf("all Leases are released")
	}
	return err
}
