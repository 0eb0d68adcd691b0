package apisim

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is something that goes wrong with a request. Faults are given to
// [Server.Inject], which applies them in their order.
//
// Some of them are about frames. A watch sends a frame per event, and any other
// answer is one frame; they count from 1. Frame 0 is the head of an answer, its status
// and header. [EachFrame] is each but the head.
type Fault struct {
	name string
	lags bool // it needs the state of when it was injected
	// begin is called when a request comes, with what is to become of it.
	begin func(c *call)
}

// EachFrame stands for the number of every frame but the head.
const EachFrame = -1

// String returns how the log of requests calls the fault.
func (f Fault) String() string { return f.name }

// Delay makes the server wait before it looks at the request.
func Delay(d time.Duration) Fault {
	return Fault{name: fmt.Sprintf("Delay(%v)", d), begin: func(c *call) { c.wait(d) }}
}

// Call calls a function before the server looks at the request, to change the state at
// that very moment or to look at the request.
func Call(f func(*http.Request)) Fault {
	return Fault{name: "Call", begin: func(c *call) { f(c.request) }}
}

// Refuse answers with a status of Kubernetes and does nothing else. With a duration
// that is not 0 it tells the client to try again after that, in whole seconds.
func Refuse(code int, retryAfter time.Duration) Fault {
	return Fault{name: fmt.Sprintf("Refuse(%d)", code), begin: func(c *call) { c.refuse(code, retryAfter) }}
}

// Answer answers in the place of the server, with whatever the handler writes.
func Answer(h http.HandlerFunc) Fault {
	return Fault{name: "Answer", begin: func(c *call) {
		h(c.out, c.request)
		c.answered = true
	}}
}

// Drop closes the connection before the server looks at the request. The client's
// transport sends a request that changes nothing again, unasked, if the connection was
// one that it had used before.
func Drop() Fault {
	return Fault{name: "Drop", begin: func(*call) { panic(http.ErrAbortHandler) }}
}

// CutBefore closes the connection when a frame is about to be sent. What was asked for
// is done then: CutBefore(0) of a create is an object whose creator does not know.
func CutBefore(frame int) Fault {
	return onFrame("CutBefore", frame, func(c *call, f frameData, _ sink) error {
		return c.cut(f.n > 0)
	})
}

// CutWithin closes the connection when half of a frame is sent.
func CutWithin(frame int) Fault {
	return onFrame("CutWithin", frame, func(c *call, f frameData, next sink) error {
		f.data = f.data[:len(f.data)/2]
		if err := next(f); err != nil {
			return err
		}
		return c.cut(true)
	})
}

// CutAfter closes the connection when a frame is sent.
func CutAfter(frame int) Fault {
	return onFrame("CutAfter", frame, func(c *call, f frameData, next sink) error {
		if err := next(f); err != nil {
			return err
		}
		return c.cut(true)
	})
}

// Truncate sends half of a frame and ends the answer there as if it were complete.
func Truncate(frame int) Fault {
	return onFrame("Truncate", frame, func(_ *call, f frameData, next sink) error {
		f.data = f.data[:len(f.data)/2]
		if err := next(f); err != nil {
			return err
		}
		return errTruncated
	})
}

// Garble sends noise in the place of a frame, of the same length and with the same
// mark of where it ends.
func Garble(frame int) Fault {
	return onFrame("Garble", frame, func(c *call, f frameData, next sink) error {
		f.data = c.noise(f.data)
		return next(f)
	})
}

// Inflate sends a frame with so many bytes more, which mean nothing.
func Inflate(frame, bytes int) Fault {
	return onFrame("Inflate", frame, func(c *call, f frameData, next sink) error {
		if f.n > 0 {
			f.data = c.inflated(f.data, bytes)
		}
		return next(f)
	})
}

// Duplicate sends a frame twice.
func Duplicate(frame int) Fault {
	return onFrame("Duplicate", frame, func(_ *call, f frameData, next sink) error {
		if f.n > 0 {
			if err := next(f); err != nil {
				return err
			}
		}
		return next(f)
	})
}

// Stall sends nothing from a frame on for a while, 0 being until the fault is lifted,
// and then goes on: a watch that is silent, with its connection open. A watch that has
// fallen behind the history meanwhile ends.
func Stall(frame int, d time.Duration) Fault {
	return onFrame("Stall", frame, func(c *call, f frameData, next sink) error {
		if err := c.stall(d, f.n > 0); err != nil {
			return err
		}
		return next(f)
	})
}

// Fail sends an ERROR event of a status in the place of a frame of a watch, and ends
// it. Fail(0, code) does so at once.
func Fail(frame, code int) Fault {
	return onFrame("Fail", frame, func(c *call, f frameData, next sink) error {
		if f.n == 0 {
			if err := next(f); err != nil {
				return err
			}
		}
		return c.fail(code, next)
	})
}

// Reorder sends an event of a watch after the next one of another object. Events of
// one object keep their order, and bookmarks come after all that they vouch for.
func Reorder(frame int) Fault {
	return Fault{name: "Reorder", begin: func(c *call) {
		late := &reordering{frame: frame}
		c.stages = append(c.stages, stage{late.pass, late.finish})
	}}
}

// DropBookmarks sends no bookmarks, that at the end of a streamed list included.
func DropBookmarks() Fault {
	return Fault{name: "DropBookmarks", begin: func(c *call) {
		c.stages = append(c.stages, stage{pass: func(f frameData, next sink) error {
			if f.kind == "BOOKMARK" {
				return nil
			}
			return next(f)
		}})
	}}
}

// Lag serves the requests from a replica that has not heard of any write since the
// fault was injected, until it is lifted. It keeps to what the API promises: reads
// that ask for the newest state get it, and versions that it has not seen are waited
// for.
func Lag() Fault {
	return Fault{name: "Lag", lags: true, begin: func(c *call) { c.lag = c.injection.replica }}
}

// RefuseStreams answers requests for a streamed list as a server without that feature
// does.
func RefuseStreams() Fault {
	return Fault{name: "RefuseStreams", begin: func(c *call) { c.refuseStreams = true }}
}

// ExpireTokens answers requests with a continue token that it is too old.
func ExpireTokens() Fault {
	return Fault{name: "ExpireTokens", begin: func(c *call) { c.expireTokens = true }}
}

// EmptyPages answers lists with pages that have no objects, each with the token of another
// such page.
func EmptyPages() Fault {
	return Fault{name: "EmptyPages", begin: func(c *call) {
		c.badPage = func(_ []object, from position, meta *metav1.ListMeta, _ string) []object {
			meta.Continue, meta.RemainingItemCount = from.next(from.After).token(), nil
			return nil
		}
	}}
}

// RepeatTokens answers requests with a continue token with that token, so that they never
// come to an end.
func RepeatTokens() Fault {
	return Fault{name: "RepeatTokens", begin: func(c *call) {
		c.badPage = func(page []object, _ position, meta *metav1.ListMeta, token string) []object {
			if token != "" {
				meta.Continue = token
			}
			return page
		}
	}}
}

// onFrame returns a fault that happens when a frame of a number comes.
func onFrame(name string, frame int, happen func(c *call, f frameData, next sink) error) Fault {
	return Fault{name: fmt.Sprintf("%s(%d)", name, frame), begin: func(c *call) {
		at := *c // with the injection that it is of
		c.stages = append(c.stages, stage{pass: func(f frameData, next sink) error {
			if f.n == frame || frame == EachFrame && f.n > 0 {
				return happen(&at, f, next)
			}
			return next(f)
		}})
	}}
}
