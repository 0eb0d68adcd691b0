package sharedinformer

import (
	"context"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// mostReports is how many reports of a reporter wait at most.
const mostReports = 64

// reporter gives failures to utilruntime, in order, on a goroutine of its own that lasts
// while there are any. A program's error handlers may take their time, or ask the informer
// how it is; client-go's own sleeps, and in a synctest bubble for decades, as it compares
// the clock of the bubble with that of the process.
type reporter struct {
	mu      sync.Mutex // guards the rest
	pending []report
	lost    int           // reports that found no room, since the last one that did
	done    chan struct{} // closed when the goroutine ends; nil while no goroutine runs
}

// report is what utilruntime.HandleErrorWithContext takes.
type report struct {
	ctx   context.Context
	err   error
	text  string
	pairs []any
}

// report reports a failure. It does not wait.
func (r *reporter) report(ctx context.Context, err error, text string, pairs ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) >= mostReports {
		r.lost++
		return
	}
	if r.lost > 0 {
		pairs = append(pairs, "unreported", r.lost)
		r.lost = 0
	}
	r.pending = append(r.pending, report{ctx, err, text, pairs})
	if r.done == nil {
		r.done = make(chan struct{})
		go r.run()
	}
}

// run reports until nothing is pending. An error handler that ends the goroutine takes
// nothing with it but its report.
func (r *reporter) run() {
	for {
		next, ok := r.next()
		if !ok {
			return
		}
		func() {
			returned := false
			defer func() {
				if !returned {
					go r.run()
				}
			}()
			utilruntime.HandleErrorWithContext(next.ctx, next.err, next.text, next.pairs...)
			returned = true
		}()
	}
}

// next takes the first report. Without one, the goroutine has ended.
func (r *reporter) next() (report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		close(r.done)
		r.done = nil
		return report{}, false
	}
	next := r.pending[0]
	r.pending = r.pending[1:]
	return next, true
}

// wait waits until everything is reported.
func (r *reporter) wait() {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done != nil {
		<-done
	}
}

// dropped reports an object that does not belong to its collection.
func (r *reporter) dropped(ctx context.Context, err error) {
	r.report(ctx, err, "An object was dropped, because it is none of those that were asked for")
}
