package sharedinformer

import (
	"context"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// maxReports is the largest number of pending reports.
const maxReports = 64

// reporter reports errors to utilruntime and to watch error handlers, in order, on a goroutine that
// ends when no report is pending. A program's error handlers may be slow, or call the informer.
// client-go's own handler sleeps. In a synctest bubble it sleeps for decades, because it compares
// the clock of the bubble with that of the process.
type reporter struct {
	mu      sync.Mutex // guards the rest
	pending []func()
	lost    int           // the number of dropped reports since the last one that was made
	done    chan struct{} // closed when the goroutine ends; nil while no goroutine runs
}

// report reports an error. It does not wait.
func (r *reporter) report(ctx context.Context, err error, text string, pairs ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) >= maxReports {
		r.lost++
		return
	}
	if r.lost > 0 {
		pairs = append(pairs, "unreported", r.lost)
		r.lost = 0
	}
	r.addLocked(func() { utilruntime.HandleErrorWithContext(ctx, err, text, pairs...) })
}

// call calls a handler. It does not wait.
func (r *reporter) call(handle func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) >= maxReports {
		r.lost++
		return
	}
	r.addLocked(handle)
}

func (r *reporter) addLocked(call func()) {
	r.pending = append(r.pending, call)
	if r.done == nil {
		r.done = make(chan struct{})
		go r.run()
	}
}

// run reports until nothing is pending. If an error handler ends the goroutine, another one
// goes on with the next report.
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
			next()
			returned = true
		}()
	}
}

// next takes the first report. Without reports it records that the goroutine ends.
func (r *reporter) next() (call func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		close(r.done)
		r.done = nil
		return nil, false
	}
	next := r.pending[0]
	r.pending = r.pending[1:]
	return next, true
}

func (r *reporter) wait() {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done != nil {
		<-done
	}
}

// dropped reports an object that was dropped because it does not belong to the collection.
func (r *reporter) dropped(ctx context.Context, err error) {
	r.report(ctx, err, "An object was dropped, because it does not belong to the collection")
}
