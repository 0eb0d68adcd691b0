package simulation

import (
	"fmt"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// addInstances puts several API servers behind a load balancer, in half of the worlds. Informers
// move between them whenever they begin a watch or a list.
func (w *world) addInstances() {
	for range []int{0, 0, 2, 3}[w.random.IntN(4)] {
		w.instances = append(w.instances, w.server.AddInstance())
	}
}

// disturbInstance makes one of several servers lag, stand still or end.
func (w *world) disturbInstance() {
	n := w.random.IntN(len(w.instances))
	i := w.instances[n]
	fault := func(name string, how any, begin, lift func()) {
		of := fmt.Sprintf("%s of instance %d", name, n)
		if !w.isActive(of) {
			begin()
			w.persist(of, fmt.Sprint(how), lift)
		}
	}
	switch w.random.IntN(5) {
	case 0:
		w.note("cut the connections of instance %d", n)
		w.met("Instance.CutConnections", 1)
		i.CutConnections()
	case 1:
		fault("SetPaused", true, func() { i.SetPaused(true) }, func() { i.SetPaused(false) })
	case 2:
		fault("SetAvailable", false, func() { i.SetAvailable(false) }, func() { i.SetAvailable(true) })
	default:
		lag := []time.Duration{apisim.Frozen, w.between(0, 10), w.between(10, 600)}[w.random.IntN(3)]
		fault("SetLag", lag, func() { i.SetLag(lag) }, func() { i.SetLag(0) })
	}
}
