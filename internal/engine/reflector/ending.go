package reflector

import (
	"errors"
	"io"
	"net"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

// cause is why a watch or a list ended, or could not begin: the end of its span.
type cause string

const (
	stopped  cause = "stopped"  // the queue is closed, or Run ends
	outgrown cause = "outgrown" // slots have come that the watch does not select
	finished cause = "finished" // the server ended the watch in good order
	endless  cause = "endless"  // a list in pages has no last page
	expired  cause = "expired"  // the server has no such version or continue token any more
	refused  cause = "refused"  // an error status, as the answer or in an event
	busy     cause = "busy"     // an error status that asks for a pause: 429, or 503 with a Retry-After
	broken   cause = "broken"   // the connection was cut, or could not be made
	// torn is a watch that the reflector ended because it was silent or suspected of lagging, or
	// because the list of a merge was older.
	torn cause = "silent" // as the attribute of spans has it
	// lost is a watch that cannot be resumed for another reason: the resource is gone, or an object
	// that the server could not read was deleted, which no event reports (KEP-3926).
	lost cause = "lost"
	// undecodable is an answer that cannot be understood, or a request that the server calls
	// invalid: its version may not be one of the server's.
	undecodable cause = "undecodable"
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

// failure is an error with the facts that its class depends on.
type failure struct {
	err        error         // of a watch or a list
	begun      bool          // it is the error of a watch that had begun
	answered   bool          // it is an error status
	code       int32         // of the status
	retryAfter time.Duration // that the server asks for, 0 if it does not
}

// class is a row of classes.
type class struct {
	test      func(failure) bool
	cause     cause
	state     health.State
	transient bool
}

const (
	backoff   = health.StateBackoff
	forbidden = health.StateForbidden
	missing   = health.StateNoSuchResource
)

// classes are the classes of errors. The first one whose test is true counts.
var classes = [...]class{
	{is(delta.ErrClosed), stopped, backoff, true},
	{is(tape.ErrTorn), torn, backoff, true},
	{is(errSlotsCame), outgrown, backoff, true},
	{func(f failure) bool { return f.begun && errors.Is(f.err, io.EOF) }, finished, backoff, true},
	{has[endlessError], endless, backoff, false},
	{answers(source.IsExpired), expired, backoff, false},
	{isMissing, lost, missing, false},
	{answers(apierrors.IsStoreReadError), lost, backoff, true},
	{is(source.ErrFrameTooLarge), undecodable, backoff, false},
	{isDecoding, undecodable, backoff, true},
	{answers(apierrors.IsInvalid), undecodable, backoff, false},
	{answers(apierrors.IsBadRequest), undecodable, backoff, false},
	{answers(apierrors.IsTooManyRequests), busy, backoff, true},
	{func(f failure) bool { return f.code == 503 && f.retryAfter > 0 }, busy, backoff, true},
	{answers(apierrors.IsForbidden), refused, forbidden, false},
	{answers(apierrors.IsUnauthorized), refused, forbidden, false},
	{func(f failure) bool { return f.code >= 500 }, refused, backoff, true},
	{func(f failure) bool { return f.answered }, refused, backoff, false},
	{has[*apierrors.UnexpectedObjectError], refused, backoff, true},
	{is(source.ErrWrongScope), broken, missing, true},
	{func(f failure) bool { return !f.begun && !isUnreachable(f.err) }, refused, backoff, true},
	{func(failure) bool { return true }, broken, backoff, true},
}

// is returns a test for an error.
func is(target error) func(failure) bool {
	return func(f failure) bool { return errors.Is(f.err, target) }
}

// answers returns a test for an error status.
func answers(test func(error) bool) func(failure) bool {
	return func(f failure) bool { return test(f.err) }
}

// has is a test for an error of type E.
func has[E error](f failure) bool {
	_, ok := errors.AsType[E](f.err)
	return ok
}

// isMissing reports whether the server has said that it has no such resource.
func isMissing(f failure) bool {
	return apierrors.IsNotFound(f.err) && !errors.Is(f.err, source.ErrPage)
}

// newFailure returns an error with its facts.
func newFailure(err error, begun bool) failure {
	f := failure{err: err, begun: begun}
	var answer apierrors.APIStatus
	if f.answered = errors.As(err, &answer); f.answered {
		f.code = answer.Status().Code
	}
	f.retryAfter, _ = source.RetryAfter(err)
	return f
}

// classify describes the error of a watch or a list. begun reports whether a watch had begun:
// before that, EOF is a broken connection.
func classify(err error, begun bool) ending {
	f := newFailure(err, begun)
	c := classes[slices.IndexFunc(classes[:], func(c class) bool { return c.test(f) })]
	return ending{
		cause: c.cause, state: c.state, transient: c.transient, retryAfter: f.retryAfter,
		missing: isMissing(f), silent: errors.Is(err, source.ErrSilent),
		unready: utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err),
	}
}

// isDecoding reports whether an answer could not be understood. Not every source returns a
// source.Error.
func isDecoding(f failure) bool {
	sourceErr, ok := errors.AsType[*source.Error](f.err)
	return ok && sourceErr.Phase == source.Decoding || errors.Is(f.err, source.ErrMalformed) ||
		errors.Is(f.err, source.ErrUnknownEvent)
}

// isUnreachable reports whether a request failed before the server could answer it.
func isUnreachable(err error) bool {
	if sourceErr, ok := errors.AsType[*source.Error](err); ok {
		return sourceErr.Phase == source.Connecting || sourceErr.Phase == source.Streaming
	}
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
