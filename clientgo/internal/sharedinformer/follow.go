package sharedinformer

import (
	"context"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tidings-go/tidings/internal/reflector"
)

// follow runs a reflector until ctx ends. A panic in it, of a lister or of a watch error
// handler, is utilruntime's to handle. If that was told to survive it, another reflector
// takes its place after a pause and lists, as in client-go.
func follow[T any](ctx context.Context, name string, reports *reporter, r *reflector.Reflector[T], next func(context.Context) *reflector.Reflector[T]) {
	for !returned(ctx, func() {
		if err := r.Run(ctx); err != nil {
			reports.report(ctx, err, "The reflector did not run", "type", name)
		}
	}) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauseAfterCrash):
			r = next(ctx)
		}
	}
}

// returned calls a function and reports whether it returned, and did not panic.
func returned(ctx context.Context, f func()) (ok bool) {
	defer utilruntime.HandleCrashWithContext(ctx)
	f()
	return true
}
