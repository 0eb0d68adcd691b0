package tidingstest

import (
	"fmt"
	"sync"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
)

const (
	loadWriters = 3
	loadWrites  = 40 // of each writer
	pillars     = 5
)

// relistsUnderLoad runs writers, adds and removes handlers, and loses connections, all at
// once.
func relistsUnderLoad(r *rig) {
	var standing []string // the objects that every list must contain
	for i := range pillars {
		name := fmt.Sprint("pillar-", i)
		r.create(name)
		standing = append(standing, r.key(name))
	}
	r.start()
	looker := r.follow("looker", func(follow.Event) {
		state := r.cached("")
		for _, key := range standing {
			if state[key] == "" {
				r.Errorf("P08: a list of %d objects is without %s", len(state), key)
			}
		}
	}, tidings.HandlerOptions{})
	var writers sync.WaitGroup
	for i := range loadWriters {
		var keys []string
		for k := range 4 {
			keys = append(keys, r.key(fmt.Sprintf("object-%d-%d", i, k)))
		}
		writers.Go(func() { r.churn(keys, standing[i]) })
	}
	var late []*follower
	for round := range 6 {
		if round%2 == 0 {
			r.gate.cut()
		} else {
			r.offline(func() { r.update(fmt.Sprint("pillar-", pillars-1)) })
		}
		late = append(late,
			r.follow(fmt.Sprint("late handler ", round), nil, tidings.HandlerOptions{}))
		brief := r.follow(fmt.Sprint("brief handler ", round), nil, tidings.HandlerOptions{})
		brief.registration.Remove()
		r.awaitClosed("a removed handler to end", brief.registration.Done())
		brief.End()
	}
	writers.Wait()
	r.agree("P08", append(late, looker)...)
}

// churn creates, changes and deletes objects in turn, and changes one that stays.
func (r *rig) churn(keys []string, stays string) {
	there := make([]bool, len(keys))
	for i := range loadWrites {
		at := i % len(keys)
		var err error
		switch {
		case i%5 == 4:
			err = r.tryUpdate(stays, nil)
		case !there[at]:
			err, there[at] = r.tryCreate(keys[at], nil), true
		case i%3 == 0:
			err, there[at] = r.tryRemove(keys[at]), false
		default:
			err = r.tryUpdate(keys[at], nil)
		}
		if err != nil {
			r.Errorf("writing: %v", err)
			return
		}
	}
}
