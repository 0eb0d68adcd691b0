package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// openTerm is a term that ends with a context.
type openTerm struct{ context.Context }

func (openTerm) Remaining() time.Duration { return time.Hour }

// TestS7_AWriteOfASingleControllerNeedsNoGoroutine: its term calls functions as the term of the
// membership does.
func TestS7_AWriteOfASingleControllerNeedsNoGoroutine(t *testing.T) {
	for _, has := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancelCause(context.Background())
			membership := Term(openTerm{ctx})
			if has {
				membership = callingTerm{openTerm{ctx}}
			}
			var led any = &ledTerm{Term: membership}
			term, ok := led.(interface{ AfterFunc(func()) func() bool })
			if !ok {
				t.Fatal("the term has no AfterFunc")
			}
			called := 0
			if stop := term.AfterFunc(func() { called += 10 }); !stop() || stop() {
				t.Error("the call is not prevented")
			}
			stop := term.AfterFunc(func() { called++ })
			end(errors.New("lost"))
			synctest.Wait()
			if called != 1 || stop() {
				t.Errorf("%d calls", called)
			}
		})
	}
}

// callingTerm is a term with AfterFunc.
type callingTerm struct{ openTerm }

func (t callingTerm) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(t.Context, f) }
