package shard

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

const (
	prefix = "tidings-go.github.io/"
	// groupLabel is a label of all Leases of a group, with its name.
	groupLabel = prefix + "shard-group"
	// memberAnnotation is the annotation of a member's Lease with its record.
	memberAnnotation = prefix + "member"
	// entriesAnnotation is the annotation of the map's Lease.
	entriesAnnotation = prefix + "entries"
)

// Of the text that a member writes about entries that are not ready, others read this much.
const (
	maxReasons = 8
	maxReason  = 200
)

// objectWeight is the weight of an object. An entry weighs one more: one of many empty slots is not
// nothing, and one with a single object is more than two empty ones.
const objectWeight = 16

// holdsMapFor is the duration in the map's Lease, in which it names its group as the holder, so
// that an election of the same name waits. The planner renews it when renewsMap have passed without
// a write. The last member that leaves releases it.
const (
	holdsMapFor = time.Hour
	renewsMap   = holdsMapFor / 3
)

// holderOfMap is the holder of the map's Lease while the group has members.
func holderOfMap(group string) string { return "members of the shard group " + group }

// writeRecord writes a record into the annotation of a Lease.
func writeRecord(l *coordinationv1.Lease, r handover.Record) error {
	text, err := r.Encode()
	if err == nil {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, memberAnnotation, text)
	}
	return err
}

// readRecord reads the record of a Lease. One that cannot be read is a member that takes nothing.
func readRecord(l *coordinationv1.Lease) handover.Record {
	r, err := handover.DecodeRecord(l.Annotations[memberAnnotation])
	if err != nil {
		return handover.Record{State: handover.Declines}
	}
	return r
}

// record returns the record of this member, with the entries of the map.
func (m *membership) record(w Work) handover.Record {
	g := m.group
	r := handover.Record{
		Name: string(m.id), Generation: g.o.Generation, Controllers: slices.Clone(w.Controllers),
		Lacks: w.Lacks, Weights: map[int]uint32{}, Reasons: map[string][]int{},
	}
	g.mu.Lock()
	said, before := m.said, g.observedLocked(m.id).Record
	g.mu.Unlock()
	r.Map, r.State, r.Refused = said.mapUID, said.state, said.refused
	n := numbering{said.controllers, w.Controllers}
	for i := range said.open.Slots() {
		switch own := n.own(i); {
		case own < 0:
		case w.Ready.Has(own):
			r.Weights[i] = handover.Weigh(objectWeight * w.Objects[own])
			if w.Late.Has(own) {
				r.Late = append(r.Late, i)
			}
		case said.shut.Has(i) && before.Weights[i] > 0: // for a second at most
			r.Weights[i] = before.Weights[i]
		}
	}
	for reason, entries := range w.Reasons {
		if len(r.Reasons) == maxReasons {
			break
		}
		for i := range n.mapped(entries).And(said.owned).Slots() {
			reason = reason[:min(len(reason), maxReason)]
			r.Reasons[reason] = append(r.Reasons[reason], i)
		}
	}
	return r
}

// said is what a membership says about itself in its Lease.
type said struct {
	mapUID      string
	state       handover.State
	refused     bool
	owned, open Set      // entries
	shut        Set      // those of open that are shut
	controllers []string // of the map
}

// take writes this member as the holder of its Lease, with its record.
func (m *membership) take(l *coordinationv1.Lease) error {
	w := m.group.handler.Work()
	if err := m.standsStill(w); err != nil {
		return err
	}
	lease.Take(l, string(m.id), m.group.times.Seconds())
	return writeRecord(l, m.record(w))
}
