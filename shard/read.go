package shard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// ErrNoGroup is returned if a group has no Lease.
var ErrNoGroup = errors.New("there is no such group")

// Report describes a group by its Leases, as [Read] returns it.
type Report struct {
	// Lease is the namespace and the name of the map's Lease.
	Lease string `json:"lease"`
	// Problems are sentences about failures and delays, empty if there are none.
	Problems []string `json:"problems"`
	// Remarks are sentences about states that are normal for a while, such as members of two
	// generations.
	Remarks []string `json:"remarks,omitempty"`
	// Planner, Members, Covered, Nobody, NotReady, Late and Moving are as in Health. The Age of a
	// member is the age of its renewTime.
	Planner  string         `json:"planner,omitzero"`
	Members  []MemberHealth `json:"members,omitempty"`
	Covered  float64        `json:"covered"`
	Nobody   string         `json:"nobody,omitzero"`
	NotReady string         `json:"notReady,omitzero"`
	Late     string         `json:"late,omitzero"`
	Moving   int            `json:"moving"`
	// Slots are the entries of the map, without times; nil if there is no map, or if it cannot be
	// read.
	Slots []Entry `json:"slots,omitempty"`
}

// Read describes a group without joining it. It sends lists and writes nothing; the credentials
// need the verb list on Leases, and get to tell why there is no map. An error that wraps
// [ErrNoGroup] reports that no Lease has the group's label.
//
// The age of a Lease is the time from its renewTime, which the member writes by its own clock, to
// the time by the clock of this machine. If one is older than half of the Lease's duration, or
// lies in the future, its member has crashed or the clocks differ: then Read waits for half of the
// duration and lists once more. A member whose Lease has changed meanwhile is live, even if the
// clocks differ.
//
// Members of two generations are a problem if the Lease of the newest member was created ten
// minutes ago or earlier, and a remark until then.
//
// A list may take as long as the Timeout of config; 0 is 3 s.
func Read(ctx context.Context, config *rest.Config, namespace, name string) (Report, error) {
	if config == nil {
		return Report{}, errors.New("shard: Read needs a rest.Config")
	}
	g, err := newObserver(config, Options{Namespace: namespace, Name: name, Identity: "reader"},
		config.Timeout)
	if err != nil {
		return Report{}, err
	}
	g.o.Duration = 0 // Leases have durations of their own
	if _, err := g.list(ctx); err != nil {
		return Report{}, fmt.Errorf("shard: Read: %w", err)
	}
	wait := g.dateByRecords()
	if g.view.table == nil && len(g.view.members) == 0 {
		return Report{}, fmt.Errorf("shard: Read: %w: the namespace %s has no Lease with the label %s=%s",
			ErrNoGroup, namespace, groupLabel, name)
	}
	if wait > 0 {
		if !lease.Sleep(ctx, wait) {
			return Report{}, fmt.Errorf("shard: Read: %w", context.Cause(ctx))
		}
		if _, err := g.list(ctx); err != nil {
			return Report{}, fmt.Errorf("shard: Read: %w", err)
		}
	}
	var unread error
	if g.view.table == nil { // a Lease of the group's name without its label is not listed
		unread = g.read(ctx, name)
	}
	r := g.report()
	if unread != nil {
		r.Remarks = append(r.Remarks, fmt.Sprintf("It is not known whether something else has a Lease "+
			"of the group's name: %v.", unread))
	}
	return r, nil
}

// mostWait is the longest wait for the second list. A Lease of a longer duration whose age is
// unlikely is taken for one in use.
const mostWait = 30 * time.Second

// clockTolerance is the distance of a renewTime in the future up to which there is no second list.
const clockTolerance = time.Second

// dateByRecords sets the ages of Leases by their renewTime. It returns the time to wait before a
// list that shows whether Leases with unlikely ages change; 0 if no age is unlikely.
func (g *Group) dateByRecords() (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.view.members {
		if s.lease == nil || s.lease.Spec.RenewTime == nil {
			continue
		}
		age := time.Since(s.lease.Spec.RenewTime.Time)
		switch half := s.Length / 2; {
		case s.Ended:
		case age < -clockTolerance:
			age, wait = half, max(wait, half) // without a change, it has run out after the wait
		case age > half:
			wait = max(wait, half)
		}
		s.Since = g.now().Add(-max(age, 0))
	}
	return min(wait, mostWait)
}

// report describes the group by the Leases that were listed.
func (g *Group) report() Report {
	h := g.Health()
	r := Report{
		Lease: h.Lease, Planner: h.Planner, Members: h.Members, Covered: h.Covered,
		Nobody: h.Nobody, NotReady: h.NotReady, Late: h.Late, Moving: h.Moving, Slots: g.Map(),
	}
	for i := range r.Slots {
		e := &r.Slots[i]
		e.Age, e.MovingFor, e.CoverFor = 0, 0, 0 // times since this process began to read
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r.Problems, r.Remarks = g.problemsLocked()
	return r
}
