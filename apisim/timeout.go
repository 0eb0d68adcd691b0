package apisim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// maxTimeout is the largest timeout that a request may have, as in a real server. A larger one
	// has no effect.
	maxTimeout = time.Minute
	// maxWriteTimeout is the largest timeout of a write, as in a real server.
	maxWriteTimeout = 34 * time.Second
)

// errTimeout is the answer to a request that runs longer than its parameter timeout.
var errTimeout = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)

// withTimeout returns a request whose context ends after its parameter timeout. Watches have no
// such limit, as in a real server. Nor do requests without the parameter: faults may last longer
// than the minute of a real server.
func withTimeout(r *http.Request, verb string) (*http.Request, context.CancelFunc, error) {
	text := r.URL.Query().Get("timeout")
	if text == "" || verb == "watch" {
		return r, func() {}, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(
			fmt.Sprintf("invalid timeout specified in the request URL - %v", err))
	}
	if timeout <= 0 || timeout > maxTimeout {
		return r, func() {}, nil
	}
	if isWrite(verb) && verb != "deletecollection" {
		timeout = min(timeout, maxWriteTimeout)
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), timeout, errTimeout)
	return r.WithContext(ctx), cancel, nil
}

// isTimedOut reports whether a request has run longer than its parameter timeout.
func isTimedOut(r *http.Request) bool {
	return errors.Is(context.Cause(r.Context()), errTimeout)
}

// isWrite reports whether requests of a verb change objects.
func isWrite(verb string) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb)
}

// timeOut answers a request that has run longer than its parameter timeout. If the head of another
// answer was sent, it closes the connection, as a real server does.
func (c *inflight) timeOut(headed bool) error {
	if headed {
		return c.cut(true)
	}
	return c.replace(errTimeout)
}
