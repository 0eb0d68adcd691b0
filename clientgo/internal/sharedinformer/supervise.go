package sharedinformer

import (
	"context"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// supervise calls run until it returns or ctx ends. A panic in it, of a lister, a watch
// error handler or a Process function, is utilruntime's to handle. If utilruntime was told to
// survive it, run is called again after a pause, as in client-go.
func supervise(ctx context.Context, run func(context.Context)) {
	for !returned(ctx, func() { run(ctx) }) {
		select {
		case <-ctx.Done():
		case <-time.After(pauseAfterCrash):
		}
	}
}

// returned calls a function and reports whether it returned, and did not panic.
func returned(ctx context.Context, f func()) (ok bool) {
	defer utilruntime.HandleCrashWithContext(ctx)
	f()
	return true
}
