package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/engine/served"
)

// Errors of a request, before the server has answered it.
var (
	// ErrStreamedListRefused means that this server or source does not stream
	// its initial state: list in pages instead.
	ErrStreamedListRefused = errors.New("streamed lists are not supported here")
	// ErrWrongScope means that a namespace was given for a resource that has none.
	ErrWrongScope = errors.New("the resource is cluster-scoped: ask for it without a namespace")
	// ErrNamespaced means that objects of a resource have a namespace where
	// RESTOptions.ClusterScoped states that they have none.
	ErrNamespaced = errors.New("the resource is namespaced: " +
		"ask for it without RESTOptions.ClusterScoped")
)

// ErrSilent is a request that was sent and brought nothing, or nothing more, for longer
// than its caller waits. Callers cancel the context of a request with it as the cause: then
// it is in the [Error] that the request ends with.
var ErrSilent = errors.New("the server sent nothing")

// Errors of an answer that cannot be understood.
var (
	// ErrFrameTooLarge is a frame or a list over the limit of [Transport].
	ErrFrameTooLarge = errors.New("larger than the limit")
	// ErrCutFrame is a stream that ended within a frame.
	ErrCutFrame = errors.New("the connection ended in the middle of a frame")
	// ErrMalformed is an answer that does not have the encoding of its Content-Type.
	ErrMalformed = errors.New("malformed")
	// ErrUnknownEvent is a watch event of a type that this package does not know.
	ErrUnknownEvent = errors.New("unknown event type")
)

// errForeign is an answer of a media type that was not asked for, and so of a server or proxy
// that is no Kubernetes API server.
var errForeign = fmt.Errorf("%w: a media type that was not asked for", ErrMalformed)

// isForeign reports whether an error is about an answer that no Kubernetes API server gives:
// errForeign, or a status whose body is markup.
func isForeign(err error) bool {
	if errors.Is(err, errForeign) {
		return true
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse &&
			strings.Contains(c.Message, markup)
	})
}

// Phase is the part of a request in which it failed.
type Phase string

const (
	// Connecting is everything before the first byte of an answer.
	Connecting Phase = "connecting"
	// Answered is a request that the server answered with an error status.
	Answered Phase = "answered"
	// Decoding is an answer that could not be understood.
	Decoding Phase = "decoding"
	// Streaming is a watch that failed after it had begun, or a list or a
	// discovery that fell silent.
	Streaming Phase = "streaming"
)

// Error is the one error type of this package. It works with errors.Is and
// errors.As: an answer of the server is an *apierrors.StatusError underneath.
type Error struct {
	// Op is "list", "watch" or "discover".
	Op string
	// Resource is the resource asked for, as in deployments.v1.apps.
	Resource string
	// Namespace is the namespace asked for, "" for all.
	Namespace string
	// Phase is the part of the request in which it failed.
	Phase Phase
	// Err is the cause.
	Err error
}

// Error names the operation that failed, its resource, the cause and, where it can be guessed, the
// remedy.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op + " " + e.Resource)
	if e.Namespace != "" {
		fmt.Fprintf(&b, " in namespace %q", e.Namespace)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if hint := e.Hint(); hint != "" {
		b.WriteString(" (" + hint + ")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns the remedy of the error, or "" where that cannot be guessed.
func (e *Error) Hint() string {
	is := func(known error) bool { return errors.Is(e.Err, known) }
	where := "cluster-wide"
	if e.Namespace != "" {
		where = fmt.Sprintf("in namespace %q", e.Namespace)
	}
	switch {
	case isForeign(e.Err):
		return "is this the address of a Kubernetes API server? " +
			"A web server, a proxy or a login page may have answered in its place"
	case apierrors.IsUnauthorized(e.Err):
		return "the server does not accept these credentials: log in again or check the kubeconfig"
	case apierrors.IsForbidden(e.Err):
		return fmt.Sprintf("grant list and watch on %s %s", e.Resource, where)
	case apierrors.IsNotFound(e.Err):
		return "the server has no such resource: " +
			"install its CustomResourceDefinition, or check group, version and name"
	case is(ErrSilent):
		return "is the API server overloaded, or does a proxy hold answers back? " +
			"Raise MaxSilence if answers may take longer"
	case e.Phase == Connecting && !slices.ContainsFunc(knownCauses, is):
		return "is the API server reachable?"
	case is(ErrFrameTooLarge):
		return "raise Transport.MaxFrameBytes or Transport.MaxListBytes " +
			"if such objects are expected"
	default:
		return ""
	}
}

// WrongObjectError is an object of another kind than the collection holds.
type WrongObjectError struct {
	// Got and Want are kinds with their API versions, as in "apps/v1 Deployment".
	Got, Want string
}

// Error names both kinds.
func (e *WrongObjectError) Error() string {
	return fmt.Sprintf("received an object of kind %s instead of %s", e.Got, e.Want)
}

// IsExpired reports whether err means that the server no longer has the resource
// version or the continue token that was asked for: list again.
func IsExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// MaxRetryAfter is the longest Retry-After that is honoured, before jitter. API servers ask for
// seconds. A proxy that asks for hours must not keep a cache stale for hours.
const MaxRetryAfter = 5 * time.Minute

// RetryAfter returns the wait that the server asked for before the next request, which may be
// longer than [MaxRetryAfter].
func RetryAfter(err error) (time.Duration, bool) {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second, ok && seconds > 0
}

// ErrPage is wrapped by the error of an answer with 404 that is not the API server's, as far as its
// discovery tells. It says nothing about the resource, though apierrors.IsNotFound is true for it.
var ErrPage = served.ErrPage

// errOptions is the error of a request whose options cannot be used.
var errOptions = errors.New("no request was sent")

// knownCauses are errors without an answer whose cause is known.
var knownCauses = []error{
	ErrWrongScope, ErrNamespaced, ErrStreamedListRefused, ErrRedirect, errOptions,
}
