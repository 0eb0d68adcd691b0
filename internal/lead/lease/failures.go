package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Failures counts the requests that fail, for health.
type Failures struct {
	mu    sync.Mutex // guards the rest
	count uint64
	last  error
	at    time.Time
}

// Get returns the number of failures, and the last one with its time.
func (f *Failures) Get() (count uint64, at time.Time, last error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count, f.at, f.last
}

// Requests are those of one loop, which sends one after another.
type Requests struct {
	Failures *Failures
	Log      *slog.Logger
	fail     bool // at present
}

// Note takes the error of a request. It logs the first failure after a success, and the first
// success after a failure. The error of a request whose ctx has ended has no effect.
func (r *Requests) Note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	failed := r.fail
	r.fail = err != nil
	if err == nil {
		if failed {
			r.Log.Info("requests for the lease succeed again")
		}
		return
	}
	level := slog.LevelWarn
	if failed {
		level = slog.LevelDebug
	}
	r.Log.Log(ctx, level, "a request for the lease failed", "error", err)
	r.Failures.mu.Lock()
	defer r.Failures.mu.Unlock()
	r.Failures.count++
	r.Failures.last, r.Failures.at = err, time.Now()
}
