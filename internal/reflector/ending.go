package reflector

import (
	"errors"
	"io"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// ending is how a watch, or the attempt to begin one, ended. What follows it is decided by
// Reflector.ended.
type ending uint8

const (
	// stopped is the end of the queue, and so of Run.
	stopped ending = iota
	// torn is a watch that the reflector ended because it was silent.
	torn
	// finished is a watch that the server ended in good order.
	finished
	// expired is a version that the server does not have any more.
	expired
	// lost is a watch that cannot be resumed for another reason: the resource is gone, or an
	// object that the server could not read was deleted, of which no event tells (KEP-3926).
	lost
	// undecodable is an event that cannot be understood, or a request that the server finds
	// to make no sense: its version may have come from something else than the server.
	undecodable
	// refused is an error status, as the answer or in an event.
	refused
	// busy is an error status that asks for patience: 429, or 503 with a Retry-After.
	busy
	// broken is a connection that was cut, or could not be made.
	broken
)

// endingOf says how a watch ended, by its error alone. An EOF before the watch has begun is a
// broken connection.
func endingOf(err error, wasOpen bool) ending {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, delta.ErrClosed):
		return stopped
	case isSilent(err):
		return torn
	case wasOpen && errors.Is(err, io.EOF):
		return finished
	case source.IsExpired(err):
		return expired
	case apierrors.IsNotFound(err) || apierrors.IsStoreReadError(err):
		return lost
	case isDecoding(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return undecodable
	case asksForPatience(err):
		return busy
	case errors.As(err, &status):
		return refused
	case isUnexpectedObject(err) || !wasOpen && !isUnreachable(err):
		return refused
	default:
		return broken
	}
}

// isDecoding reports whether an answer could not be understood. Sources that are made of
// something else than REST have no phases.
func isDecoding(err error) bool {
	if sourceErr, ok := errors.AsType[*source.Error](err); ok && sourceErr.Phase == source.Decoding {
		return true
	}
	return errors.Is(err, source.ErrMalformed) || errors.Is(err, source.ErrUnknownEvent) || errors.Is(err, source.ErrFrameTooLarge)
}

func asksForPatience(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsTooManyRequests(err) {
		return true
	}
	asked, _ := source.RetryAfter(err)
	return errors.As(err, &status) && status.Status().Code == http.StatusServiceUnavailable && asked > 0
}

// isUnexpectedObject reports whether err is an ERROR event whose object is no Status.
func isUnexpectedObject(err error) bool {
	_, ok := errors.AsType[*apierrors.UnexpectedObjectError](err)
	return ok
}

// isUnreachable reports whether a request failed before the server could answer it.
func isUnreachable(err error) bool {
	if sourceErr, ok := errors.AsType[*source.Error](err); ok {
		return sourceErr.Phase == source.Connecting || sourceErr.Phase == source.Streaming
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
