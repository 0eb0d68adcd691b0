package simulation

import (
	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/tidingstest"
)

// checker is a handler that checks that each event follows from the ones before.
type checker struct {
	follow.Follower
	tidings.HandlerOptions
	panics       bool // now and then, after an event
	strips       bool // as those of its informer
	registration tidingstest.Registration
	audited      bool              // it was there at the last audit
	held         map[string]string // at the last audit
}

// edge is the beginning or the end of an object in a scope.
type edge struct {
	begins bool
	uid    string
}

func (e edge) String() string {
	return map[bool]string{true: "+", false: "-"}[e.begins] + e.uid[:min(len(e.uid), 8)]
}

// handle is called by the informer.
func (c *checker) handle(e tidings.Event[tidings.Object]) {
	event := follow.EventOf(e)
	if c.strips && event.Old != "" {
		event.Old = stateOf(e.Old)
	}
	if c.strips && event.New != "" {
		event.New = stateOf(e.New)
	}
	c.Handle(event)
	if c.panics && c.Calls()%7 == 0 {
		panic("a handler that panics now and then")
	}
}

// edges returns the edges of events, by key, and for each UID that ended and did not begin
// again how it did.
func (c *checker) edges(events []follow.Event) (map[string][]edge, map[string]string) {
	edges, ended := map[string][]edge{}, map[string]string{}
	begin := func(key, state string) {
		c.held[key] = state
		edges[key] = append(edges[key], edge{true, follow.UID(state)})
		delete(ended, follow.UID(state))
	}
	end := func(key, how string) {
		uid := follow.UID(c.held[key])
		delete(c.held, key)
		edges[key] = append(edges[key], edge{false, uid})
		ended[uid] = how
	}
	for _, e := range events {
		switch {
		case e.Type == tidings.Added:
			begin(e.Key, e.New)
		case e.Type == tidings.Deleted && e.Tombstone:
			end(e.Key, "tombstone")
		case e.Type == tidings.Deleted:
			end(e.Key, "deleted")
		case follow.UID(e.New) != follow.UID(e.Old):
			end(e.Key, "replaced")
			begin(e.Key, e.New)
		}
	}
	return edges, ended
}
