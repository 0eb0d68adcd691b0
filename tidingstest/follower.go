package tidingstest

import (
	"strconv"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

const (
	// labelNumber is the label with the number of the write that made a state. Numbers only
	// grow, so that they distinguish and order states without versions.
	labelNumber = follow.LabelName
	// labelSuite is the label with the name of the test's first namespace. Informers select
	// by it.
	labelSuite = "tidingstest"
	// labelFault is the label that makes the index function fail.
	labelFault = "fault"
)

// number returns the number of a state.
func number(state string) int {
	n, err := strconv.Atoi(follow.Label(state))
	if err != nil {
		return -1
	}
	return n
}

func keyOf(obj tidings.Object) string { return source.Key(obj.GetNamespace(), obj.GetName()) }

// follower is a handler of a test.
type follower struct {
	follow.Follower
	name         string
	registration Registration
}

// follow adds a handler. Its registration is set when follow returns.
func (r *rig) follow(name string, act func(follow.Event), o tidings.HandlerOptions) *follower {
	r.Helper()
	f, err := r.tryFollow(name, act, o)
	r.must(err)
	return f
}

// tryFollow is follow for calls from handlers and from goroutines other than the test's.
func (r *rig) tryFollow(
	name string, act func(follow.Event), o tidings.HandlerOptions,
) (*follower, error) {
	f := &follower{name: name, Follower: follow.Follower{
		InitialFirst: true, Act: act,
		Before: func(state, than string) bool { return number(state) < number(than) },
	}}
	o.Name = name
	var err error
	f.registration, err = r.informer.AddHandler(func(e Event) {
		f.Handle(follow.EventOf(e))
		r.poke()
	}, o)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followers = append(r.followers, f)
	return f, nil
}

// takeOf returns the events of one key since the last call.
func (f *follower) takeOf(key string) (events []follow.Event) {
	for _, e := range f.Take() {
		if e.Key == key {
			events = append(events, e)
		}
	}
	return events
}
