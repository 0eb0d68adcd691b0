package sharedinformer

import (
	"context"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// supervise calls run until it returns or ctx ends. utilruntime handles the panics of listers and
// watch error handlers in it. If a panic does not crash the process, run is called again after a
// pause, as in client-go.
func supervise(ctx context.Context, run func(context.Context)) {
	for !returned(ctx, func() { run(ctx) }) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauseAfterCrash):
		}
	}
}

// returned calls a function and reports whether it returned without a panic.
func returned(ctx context.Context, f func()) (ok bool) {
	defer utilruntime.HandleCrashWithContext(ctx)
	f()
	return true
}
