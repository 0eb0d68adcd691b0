package controllers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
)

var deployments = appsv1.SchemeGroupVersion.WithResource("deployments")

// leases matches the requests for leases.
var leases = apisim.Match{Resource: "leases.coordination.k8s.io"}

func (w *world) lease() *coordinationv1.Lease {
	w.Helper()
	lease, err := apisim.Get[*coordinationv1.Lease](w.Context(), w.server, opsNamespace, leaseName)
	if err != nil {
		w.Fatal(err)
	}
	return lease
}

// lateWrites: a call writes ten times a second while the answer of a renewal takes 4.9 seconds
// and all further renewals fail. It returns how many writes were sent after the time of the last
// renewal and the duration that the Lease names, up to the end of the program.
func lateWrites(w *world, s stack) float64 {
	w.create(deployment(opsNamespace, "a"))
	var calls atomic.Int64
	p := s.start(w, program{name: "writer", workers: 1, elected: true, call: func(
		ctx context.Context, _ string, d *appsv1.Deployment, c client,
	) (time.Duration, error) {
		calls.Add(1)
		for ctx.Err() == nil {
			next := d.DeepCopy()
			next.ResourceVersion = ""
			next.Status.Replicas++
			if _, err := c.updateStatus(ctx, next); err != nil {
				return 0, err
			}
			time.Sleep(100 * time.Millisecond)
		}
		return 0, nil
	}})
	w.await("the program does not lead", func() bool { return calls.Load() > 0 })
	renewed := w.lease().Spec.RenewTime.Time
	slow := leases
	slow.Verb, slow.Times = "update", 1
	w.server.Inject(slow, apisim.Stall(0, 4900*time.Millisecond))
	w.await("the lease is not renewed", func() bool {
		return w.lease().Spec.RenewTime.After(renewed)
	})
	w.server.Inject(leases, apisim.Drop())
	spec := w.lease().Spec
	up := spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
	select {
	case <-p.ended:
	case <-time.After(time.Until(up.Add(time.Minute))):
	}
	before, n := 0, 0
	writes := apisim.Match{Verb: "update", Resource: "deployments.apps/status"}
	for _, r := range w.server.Requests().Of(writes) {
		switch {
		case !r.Time.After(up):
			before++
		case !p.gone() || !r.Time.After(p.endedAt):
			n++
		}
	}
	if before < 100 {
		w.Errorf("the program wrote %d times while it led, want 10 a second", before)
	}
	return float64(n)
}

// span is the time of a call.
type span struct {
	program    string
	begin, end time.Time
}

// working is a program whose calls take so long, and follow each other.
func working(name string, take, pause time.Duration, spans *log[span]) program {
	return program{name: name, workers: 1, elected: true, releases: true, call: func(
		context.Context, string, *appsv1.Deployment, client,
	) (time.Duration, error) {
		begin := time.Now()
		spans.add(span{name, begin, begin.Add(take)})
		time.Sleep(take)
		return pause, nil
	}}
}

// first returns the first call of a program, or false.
func first(spans []span, name string) (span, bool) {
	for _, s := range spans {
		if s.program == name {
			return s, true
		}
	}
	return span{}, false
}

// last returns the last call of a program.
func last(spans []span, name string) (found span) {
	for _, s := range spans {
		if s.program == name {
			found = s
		}
	}
	return found
}

// overlapOf: a program is stopped at the beginning of a call of so many seconds, while another
// waits for its lease. It returns for how many seconds calls of both ran.
func overlapOf(seconds int) func(w *world, s stack) float64 {
	return func(w *world, s stack) float64 {
		w.create(deployment(opsNamespace, "a"))
		var spans log[span]
		take := time.Duration(seconds) * time.Second
		one := s.start(w, working("one", take, time.Second, &spans))
		w.await("the first program does not work", func() bool { return len(spans.all()) > 0 })
		s.start(w, working("two", take, time.Second, &spans))
		time.Sleep(time.Second)
		one.stop()
		w.await("the second program does not work", func() bool {
			_, ok := first(spans.all(), "two")
			return ok
		})
		begun, _ := first(spans.all(), "two")
		<-one.ended
		end := last(spans.all(), "one").end
		if end.After(one.endedAt) {
			end = one.endedAt // the call has ended with its process
		}
		return max(0, end.Sub(begun.begin).Seconds())
	}
}

// takeOvers is the number of measured take-overs.
const takeOvers = 10

// plannedTakeOver: a program is stopped, and another takes over, again and again. It returns how
// many seconds passed at most between the last call of the one and the first call of the other.
func plannedTakeOver(w *world, s stack) float64 {
	return takeOver(w, s, func(p *process) { p.stop() })
}

// crashedTakeOver is plannedTakeOver of programs that crash.
func crashedTakeOver(w *world, s stack) float64 {
	return takeOver(w, s, func(p *process) { p.crash() })
}

func takeOver(w *world, s stack, end func(*process)) float64 {
	const pause = 100 * time.Millisecond
	w.create(deployment(opsNamespace, "a"))
	var spans log[span]
	begin := func(i int) (*process, string) {
		name := fmt.Sprintf("p%d", i)
		return s.start(w, working(name, 0, pause, &spans)), name
	}
	works := func(name string) {
		w.await("program "+name+" does not work", func() bool {
			_, ok := first(spans.all(), name)
			return ok
		})
	}
	var longest time.Duration
	holder, name := begin(0)
	works(name)
	for i := range takeOvers {
		next, nextName := begin(i + 1)
		time.Sleep(10*time.Second + time.Duration(i)*370*time.Millisecond)
		end(holder)
		works(nextName)
		begun, _ := first(spans.all(), nextName)
		longest = max(longest, begun.begin.Sub(last(spans.all(), name).end))
		holder, name = next, nextName
	}
	return longest.Seconds()
}
