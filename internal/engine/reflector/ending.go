package reflector

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

// cause is why a watch or a list ended, or could not begin.
type cause uint8

const (
	// stopped is the end of the queue, and so of Run.
	stopped cause = iota
	// torn is a watch that the reflector ended because it was silent or suspected of lagging, or
	// because the list of a merge was older.
	torn
	// outgrown is a watch that the reflector ended because slots have come that it does not select.
	outgrown
	// finished is a watch that the server ended in good order.
	finished
	// endless is a list in pages that has no last page.
	endless
	// expired is a version or a continue token that the server does not have any more.
	expired
	// lost is a watch that cannot be resumed for another reason: the resource is gone, or an
	// object that the server could not read was deleted, which no event reports (KEP-3926).
	lost
	// undecodable is an answer that cannot be understood, or a request that the server calls
	// invalid: its version may not be one of the server's.
	undecodable
	// refused is an error status, as the answer or in an event.
	refused
	// busy is an error status that asks for a pause: 429, or 503 with a Retry-After.
	busy
	// broken is a connection that was cut, or could not be made.
	broken
)

// ending describes an error that ended a watch or a list, or kept it from beginning.
type ending struct {
	cause      cause
	state      health.State  // of a reflector that waits because of the error
	retryAfter time.Duration // that the server asks for, 0 if it does not
	missing    bool          // the server has no such resource
	silent     bool          // the request brought nothing for Options.MaxSilence
	transient  bool          // the same page may be read by the next request
	unready    bool          // another request would fail as well: no connection, or 429
}

// classify describes the error of a watch or a list. begun reports whether a watch had begun:
// before that, EOF is a broken connection.
func classify(err error, begun bool) ending {
	var status apierrors.APIStatus
	answered, code := errors.As(err, &status), int32(0)
	if answered {
		code = status.Status().Code
	}
	end := ending{
		state:   health.StateBackoff,
		missing: apierrors.IsNotFound(err) && !errors.Is(err, source.ErrPage),
		silent:  errors.Is(err, source.ErrSilent),
		unready: utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err),
	}
	end.retryAfter, _ = source.RetryAfter(err)
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		end.state = health.StateForbidden
	case end.missing || errors.Is(err, source.ErrWrongScope):
		end.state = health.StateNoSuchResource
	}
	_, noStatus := errors.AsType[*apierrors.UnexpectedObjectError](err) // an ERROR event
	_, noEnd := errors.AsType[endlessError](err)
	switch {
	case errors.Is(err, delta.ErrClosed):
		end.cause = stopped
	case isTorn(err):
		end.cause = torn
	case errors.Is(err, errSlotsCame):
		end.cause = outgrown
	case begun && errors.Is(err, io.EOF):
		end.cause = finished
	case noEnd:
		end.cause = endless
	case source.IsExpired(err):
		end.cause = expired
	case end.missing || apierrors.IsStoreReadError(err):
		end.cause = lost
	case isDecoding(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		end.cause = undecodable
	case apierrors.IsTooManyRequests(err),
		code == http.StatusServiceUnavailable && end.retryAfter > 0:
		end.cause = busy
	case answered || noStatus || !begun && !isUnreachable(err):
		end.cause = refused
	default:
		end.cause = broken
	}
	end.transient = code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	if !answered {
		end.transient = !noEnd && !errors.Is(err, source.ErrFrameTooLarge)
	}
	return end
}

// isTorn reports whether the reflector ended a watch for this error.
func isTorn(err error) bool { return errors.Is(err, tape.ErrTorn) }

// isDecoding reports whether an answer could not be understood. Not every source returns a
// source.Error.
func isDecoding(err error) bool {
	sourceErr, ok := errors.AsType[*source.Error](err)
	return ok && sourceErr.Phase == source.Decoding || errors.Is(err, source.ErrMalformed) ||
		errors.Is(err, source.ErrUnknownEvent) || errors.Is(err, source.ErrFrameTooLarge)
}

// isUnreachable reports whether a request failed before the server could answer it.
func isUnreachable(err error) bool {
	if sourceErr, ok := errors.AsType[*source.Error](err); ok {
		return sourceErr.Phase == source.Connecting || sourceErr.Phase == source.Streaming
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
