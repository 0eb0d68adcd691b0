package apisim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// Fault is a failure that the server simulates for a request. [Server.Inject] takes faults and
// applies them in their order.
//
// Some faults are about frames. A watch sends a frame per event, and any other answer is one frame.
// Frames count from 1. Frame 0 is the head of an answer, its status and header. [EachFrame] stands
// for every frame but the head. Of several faults that change the pages of a list, the last one
// holds.
type Fault struct {
	name string
	lags bool // it needs the state at the injection
	// begin is called when a request arrives.
	begin func(c *inflight, i *Injection)
}

// EachFrame stands for the number of every frame but the head.
const EachFrame = -1

// String returns the name of the fault in the log of requests.
func (f Fault) String() string { return f.name }

// Delay makes the server wait before it handles the request.
func Delay(d time.Duration) Fault {
	return Fault{name: fmt.Sprintf("Delay(%v)", d), begin: func(c *inflight, i *Injection) {
		c.wait(i, d)
	}}
}

// Call calls a function before the server handles the request, to change the state at that moment
// or to inspect the request.
func Call(f func(*http.Request)) Fault {
	return Fault{name: "Call", begin: func(c *inflight, _ *Injection) { f(c.request) }}
}

// Refuse answers with a status of Kubernetes and does nothing else. With a retryAfter other than 0,
// the client is to try again after that time, in whole seconds.
func Refuse(code int, retryAfter time.Duration) Fault {
	return Fault{name: fmt.Sprintf("Refuse(%d)", code), begin: func(c *inflight, _ *Injection) {
		writeError(c, c.request, errInjected(code, c, retryAfter))
		c.answered = true
	}}
}

// RefuseApplied carries the request out, and answers with a status of Kubernetes in the place of
// its own answer: a write is applied, and its client receives an error.
func RefuseApplied(code int) Fault {
	name := fmt.Sprintf("RefuseApplied(%d)", code)
	return Fault{name: name, begin: func(c *inflight, _ *Injection) {
		c.stages = append(c.stages, func(frameData, sink) error {
			return c.replace(errInjected(code, c, 0))
		})
	}}
}

// ApplyLater answers with a status of Kubernetes at once and carries a write out after a time, even
// if the fault is lifted or the client is gone by then. It only refuses other requests.
func ApplyLater(d time.Duration, code int) Fault {
	name := fmt.Sprintf("ApplyLater(%v, %d)", d, code)
	return Fault{name: name, begin: func(c *inflight, i *Injection) {
		err := error(errInjected(code, c, 0))
		if isWrite(c.asked.Verb) {
			err = cmp.Or(i.server.serveLater(c.request, d), err)
		}
		writeError(c, c.request, err)
		c.answered = true
	}}
}

// Answer sends the answer that the handler writes, and does nothing else.
func Answer(h http.HandlerFunc) Fault {
	return Fault{name: "Answer", begin: func(c *inflight, _ *Injection) {
		h(c, c.request)
		c.answered = true
	}}
}

// Drop closes the connection before the server handles the request. The client's transport repeats
// a request that changes nothing, if it had used the connection before.
func Drop() Fault {
	return Fault{name: "Drop", begin: func(*inflight, *Injection) { panic(http.ErrAbortHandler) }}
}

// CutBefore closes the connection before a frame. The request is carried out: CutBefore(0) of a
// create makes an object, and the client receives no answer.
func CutBefore(frame int) Fault {
	return onFrame("CutBefore", frame, func(c *inflight, _ *Injection, f frameData, _ sink) error {
		return c.cut(f.n > 0)
	})
}

// CutWithin closes the connection after half of a frame.
func CutWithin(frame int) Fault {
	return ending("CutWithin", frame, frameData.half, (*inflight).cut)
}

// CutAfter closes the connection after a frame.
func CutAfter(frame int) Fault {
	return ending("CutAfter", frame, func(f frameData) frameData { return f }, (*inflight).cut)
}

// CutLater closes the connection of a request that still runs after a time, as a load balancer may
// do.
func CutLater(d time.Duration) Fault {
	return later(fmt.Sprintf("CutLater(%v)", d), d, func(c *inflight, _ sink) error {
		return c.cut(c.headed)
	})
}

// Truncate sends half of a frame and ends the answer there as if it were complete.
func Truncate(frame int) Fault {
	return ending("Truncate", frame, frameData.half, func(*inflight, bool) error { return errTruncated })
}

// ending returns a fault that ends the answer after a part of a frame.
func ending(name string, frame int, part func(frameData) frameData,
	end func(c *inflight, headed bool) error) Fault {
	return onFrame(name, frame, func(c *inflight, _ *Injection, f frameData, next sink) error {
		if err := next(part(f)); err != nil {
			return err
		}
		return end(c, true)
	})
}

// Garble replaces a frame by noise of the same length with the same delimiter.
func Garble(frame int) Fault {
	return onFrame("Garble", frame, func(c *inflight, _ *Injection, f frameData, next sink) error {
		f.data = noise(f.data, c.form())
		return next(f)
	})
}

// Inflate adds a number of bytes without a meaning to a frame, 128 MiB at most.
func Inflate(frame, bytes int) Fault {
	bytes = min(max(bytes, 0), 128<<20)
	return onFrame("Inflate", frame, func(c *inflight, _ *Injection, f frameData, next sink) error {
		f.data = inflated(f.data, c.form(), bytes)
		return next(f)
	})
}

// Duplicate sends a frame twice, but the head once.
func Duplicate(frame int) Fault {
	return onFrame("Duplicate", frame, func(_ *inflight, _ *Injection, f frameData, next sink) error {
		if f.n > 0 {
			if err := next(f); err != nil {
				return err
			}
		}
		return next(f)
	})
}

// Stall sends nothing from a frame on for a time, or until the fault is lifted for 0, and then
// sends the rest. A watch is silent meanwhile, with its connection open. It ends if it has fallen
// behind the history.
func Stall(frame int, d time.Duration) Fault {
	if d == 0 {
		d = 1<<63 - 1
	}
	return onFrame("Stall", frame, func(c *inflight, i *Injection, f frameData, next sink) error {
		if f.n > 0 {
			if err := c.flush(); err != nil {
				return err
			}
		}
		c.wait(i, d)
		if isTimedOut(c.request) {
			return c.timeOut(f.n > 0)
		}
		return next(f)
	})
}

// Fail replaces a frame of a watch by an ERROR event with a status, and ends the watch.
// Fail(0, code) does so at once.
func Fail(frame, code int) Fault {
	return onFrame("Fail", frame, func(c *inflight, _ *Injection, f frameData, next sink) error {
		if f.n == 0 {
			if err := next(f); err != nil {
				return err
			}
		}
		return c.fail(code, next)
	})
}

// FailLater sends an ERROR event with a status to a watch that still runs after a time, and ends
// the watch.
func FailLater(d time.Duration, code int) Fault {
	return later(fmt.Sprintf("FailLater(%v, %d)", d, code), d, func(c *inflight, next sink) error {
		return c.fail(code, next)
	})
}

// errLater is the cause of the end of a request that a fault ends after a time.
var errLater = errors.New("apisim: a fault ended the request after a time")

// later returns a fault that ends a request after a time, unless the fault is lifted before.
func later(name string, d time.Duration, end func(c *inflight, next sink) error) Fault {
	return Fault{name: name, begin: func(c *inflight, i *Injection) {
		ctx, cancel := context.WithCancelCause(c.request.Context())
		timer := time.AfterFunc(d, func() {
			select {
			case <-i.lifted:
			default:
				cancel(errLater)
			}
		})
		context.AfterFunc(ctx, func() { timer.Stop() })
		c.request = c.request.WithContext(ctx)
		c.stages = append(c.stages, func(f frameData, next sink) error {
			if f.n == lastFrame && errors.Is(context.Cause(ctx), errLater) {
				return end(c, next)
			}
			return next(f)
		})
	}}
}

// Reorder sends an event of a watch after the next one of another object. Events of one
// object keep their order, and a bookmark comes after all events before it.
func Reorder(frame int) Fault {
	return Fault{name: "Reorder", begin: func(c *inflight, _ *Injection) {
		c.stages = append(c.stages, (&reordering{frame: frame}).pass)
	}}
}

// DropBookmarks sends no bookmarks, including the one at the end of a streamed list.
func DropBookmarks() Fault {
	return Fault{name: "DropBookmarks", begin: func(c *inflight, _ *Injection) {
		c.stages = append(c.stages, func(f frameData, next sink) error {
			if f.event == watch.Bookmark {
				return nil
			}
			return next(f)
		})
	}}
}

// Lag serves the requests from a server without the writes since the injection, until the fault is
// lifted. It keeps to the API: reads of the newest state return it, and requests for versions that
// the server does not have wait for them. An [Instance] lags with all requests.
func Lag() Fault {
	return Fault{name: "Lag", lags: true, begin: func(c *inflight, i *Injection) {
		c.laggard = i.laggard
	}}
}

// RefuseStreams answers requests for a streamed list as a server without that feature
// does.
func RefuseStreams() Fault {
	return Fault{name: "RefuseStreams", begin: func(c *inflight, _ *Injection) { c.refuseStreams = true }}
}

// ExpireTokens answers requests that have a continue token with an error: the token is too old.
func ExpireTokens() Fault {
	return Fault{name: "ExpireTokens", begin: func(c *inflight, _ *Injection) { c.expireTokens = true }}
}

// EmptyPages answers lists with pages without objects, each with the token of another
// such page.
func EmptyPages() Fault {
	return Fault{name: "EmptyPages", begin: func(c *inflight, _ *Injection) {
		c.badPage = func(page *listPage, from position, _ string) {
			page.objects = nil
			page.meta.Continue, page.meta.RemainingItemCount = from.next(from.After).token(), nil
		}
	}}
}

// RepeatTokens answers requests that have a continue token with that token again, so that their
// client never reaches the end.
func RepeatTokens() Fault {
	return Fault{name: "RepeatTokens", begin: func(c *inflight, _ *Injection) {
		c.badPage = func(page *listPage, _ position, token string) {
			if token != "" {
				page.meta.Continue = token
			}
		}
	}}
}

func onFrame(name string, frame int,
	happen func(c *inflight, i *Injection, f frameData, next sink) error) Fault {
	return Fault{name: fmt.Sprintf("%s(%d)", name, frame), begin: func(c *inflight, i *Injection) {
		c.stages = append(c.stages, func(f frameData, next sink) error {
			if f.n == frame || frame == EachFrame && f.n > 0 {
				return happen(c, i, f, next)
			}
			return next(f)
		})
	}}
}
