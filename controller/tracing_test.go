package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/source"
)

// spanKey is the key of the name of a span in its context.
type spanKey struct{}

// tracer writes the ends of spans into a log.
type tracer struct{ log *calls }

func (t tracer) Start(ctx context.Context, name string, attrs ...slog.Attr) (context.Context, source.Span) {
	return context.WithValue(ctx, spanKey{}, name), span{t.log, fmt.Sprint(name, " ", attrs)}
}

type span struct {
	log   *calls
	began string
}

func (s span) End(err error, attrs ...slog.Attr) { s.log.add("%s %v %v", s.began, attrs, err) }

// TestSpansOfCalls has a call that fails, one that panics and one that requests another call.
func TestSpansOfCalls(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		var log calls
		n := 0
		c := newController(w, options{Tracer: tracer{&log}, FirstDelay: time.Second}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("call under %v", ctx.Value(spanKey{}))
			switch n++; n {
			case 1:
				return controller.Result{}, errors.New("it failed")
			case 2:
				panic("oh")
			}
			return controller.Result{RequeueAfter: time.Hour}, nil
		})
		stop := start(w, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		name := "reconcile " + c.Health().Name
		of := name + " [controller=" + c.Health().Name + " key=a/x reasons="
		log.expect(t,
			"call under "+name,
			of+"[Initial configmaps.v1 a/x] moreReasons=0 failures=0 waited=0s gone=false] [requeueAfter=0s] it failed",
			"call under "+name,
			of+"[Retry] moreReasons=0 failures=1 waited=0s gone=false] [requeueAfter=0s] the call panicked: oh",
			"call under "+name,
			of+"[Retry] moreReasons=0 failures=2 waited=0s gone=false] [requeueAfter=1h0m0s] <nil>",
		)
		fatal(t, stop())
	})
}
