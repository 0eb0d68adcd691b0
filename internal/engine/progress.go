package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// progress knows which version each partition of a collection has reached, and wakes the waits for
// more.
//
// A removed partition stays until the processor has deleted its objects. If it is added again
// before that, there are two of its name. Batches then mean the first one: they come in the order
// of the partitions' lives. Questions mean the last one, which does not leave.
type progress struct {
	mu         sync.Mutex       // guards the rest
	partitions []partitionState // never empty; not written once it stands here
	changed    chan struct{}
}

// partitionState is the version of a partition.
type partitionState struct {
	partition string
	version   string // "" until its first list is applied
	listed    bool
	leaves    bool // it was removed, and the cache may hold its objects
}

// add adds a partition, which is yet to be listed.
func (p *progress) add(partition string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partitions = append(slices.Clone(p.partitions), partitionState{partition: partition})
}

// leave notes that a partition was removed. It is called under Collection.applyMu.
func (p *progress) leave(partition string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partitions = slices.Clone(p.partitions)
	if i := presentIn(p.partitions, partition); i >= 0 {
		p.partitions[i].leaves = true
	}
}

// after returns the partitions as they are once a batch is applied, and the version that the whole
// cache then reflects: the oldest of theirs. Only the processor calls it, and then reached; no
// partition may be added in between.
func (p *progress) after(
	removed []string, replaced bool, marks []delta.Mark,
) (partitions []partitionState, oldest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	partitions = slices.Clone(p.partitions) // waits may be reading them
	for _, partition := range removed {
		if i := indexOf(partitions, partition); i >= 0 {
			partitions = slices.Delete(partitions, i, i+1)
		}
	}
	for n, mark := range marks {
		if i := indexOf(partitions, mark.Partition); i >= 0 {
			partitions[i].version = mark.Version
			partitions[i].listed = partitions[i].listed || replaced && n == 0
		}
	}
	return partitions, oldestOf(partitions)
}

func indexOf(partitions []partitionState, partition string) int {
	return slices.IndexFunc(partitions, func(s partitionState) bool { return s.partition == partition })
}

// presentIn returns the index of the partition of a name that does not leave.
func presentIn(partitions []partitionState, partition string) int {
	return slices.IndexFunc(partitions, func(s partitionState) bool {
		return s.partition == partition && !s.leaves
	})
}

// reached sets the partitions that after has returned, once the cache holds the batch.
func (p *progress) reached(partitions []partitionState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partitions = partitions
}

// oldestOf returns the oldest version, "" while a partition has none.
func oldestOf(partitions []partitionState) string {
	oldest := ""
	for i, s := range partitions {
		if s.version == "" {
			return ""
		}
		if order, ok := delta.CompareDecimal(s.version, oldest); i == 0 || ok && order < 0 {
			oldest = s.version
		}
	}
	return oldest
}

// reflects reports whether every partition has reached version.
func (p *progress) reflects(version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	order, ok := delta.CompareDecimal(oldestOf(p.partitions), version)
	return ok && order >= 0
}

// listed reports whether a partition was listed.
func (p *progress) listed(partition string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := indexOf(p.partitions, partition)
	return i >= 0 && p.partitions[i].listed
}

// complete reports whether every partition was listed, and none leaves.
func (p *progress) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(p.partitions, func(s partitionState) bool {
		return !s.listed || s.leaves
	})
}

// wake wakes all waits.
func (p *progress) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// of returns the partition that holds the keys of a prefix.
func (p *progress) of(prefix string) (s partitionState, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := presentIn(p.partitions, prefix)
	if i < 0 {
		i = presentIn(p.partitions, "")
	}
	if i < 0 {
		return s, false
	}
	return p.partitions[i], true
}

// await calls done after every change until it returns true, or an error of its own, or ctx ends.
func (p *progress) await(ctx context.Context, done func() (bool, error)) error {
	for {
		p.mu.Lock()
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}
