package lease

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Errors of a closed term. [Term.Err] wraps one of them.
var (
	// ErrLost is wrapped by the errors of each term that its holder did not end.
	ErrLost = errors.New("the lease is lost")
	// ErrDeadline: no renewal succeeded before the fence.
	ErrDeadline = fmt.Errorf("%w: it was not renewed in time", ErrLost)
	// ErrDeleted: the Lease was deleted.
	ErrDeleted = fmt.Errorf("%w: it was deleted", ErrLost)
	// ErrTaken: another holder is written in the Lease; the error names it.
	ErrTaken = fmt.Errorf("%w: it was taken", ErrLost)
	// ErrReleased: the holder has released the Lease.
	ErrReleased = errors.New("the lease is released")
)

// ErrNotHeld ends a write of a lease that has another holder by now.
var ErrNotHeld = errors.New("the lease has another holder")

// errNoLease is the error of a request whose answer is something else than one of the API server.
var errNoLease = errors.New("the answer is no Lease: something else than the API server has sent it")

// errOutpaced ends a write that others were faster than twice.
var errOutpaced = errors.New("others change the lease faster than it is written")

// requestError returns the error of a request with the remedy, where it is known.
func (c *Client) requestError(verb, name string, err error) error {
	if err == nil {
		return nil
	}
	if isPage(err) {
		err = fmt.Errorf("%w: %v", errNoLease, err) // a Lease that a proxy does not find may exist
	}
	remedy := ""
	switch {
	case apierrors.IsForbidden(err) && !isTerminating(err):
		remedy = fmt.Sprintf(": grant the verb %s on leases of the API group coordination.k8s.io "+
			"in the namespace %s", verb, c.namespace)
	case apierrors.IsUnauthorized(err):
		remedy = ": check the credentials of the rest.Config"
	case apierrors.IsNotFound(err) && verb == "create":
		remedy = fmt.Sprintf(": create the namespace %s", c.namespace)
	}
	return fmt.Errorf("%s lease %s/%s: %w%s", verb, c.namespace, name, err, remedy)
}

// isTerminating reports whether a request was refused because its namespace is being deleted.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// NeedsUser reports whether a request fails until somebody changes the cluster or the program.
func NeedsUser(verb string, err error) bool {
	return apierrors.IsForbidden(err) && !isTerminating(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsInvalid(err) || verb == "create" && apierrors.IsNotFound(err)
}

// IsOutdated reports whether a write failed because the lease is not as it was observed.
func IsOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// isPage reports whether an answer states a fact that only the API server can know, and is not that
// server's.
func isPage(err error) bool {
	return apierrors.IsUnexpectedServerError(err) && (IsOutdated(err) || apierrors.IsForbidden(err))
}

// IsTimeout reports whether a request ended without an answer in time.
func IsTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// isExpired reports whether a watch must begin with a new list.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }
