package election

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
	// ErrReleased: lead returned, and the Lease is released.
	ErrReleased = errors.New("the lease is released")
)

// ErrStragglers says that calls of a term still run. [Elector.Run] returns it when lead did not
// return within its grace. A lead that returns it prevents the release.
var ErrStragglers = errors.New("calls of the term still run")

// errNotHeld ends a write of a lease that has another holder by now.
var errNotHeld = errors.New("the lease has another holder")

// errOutpaced ends a write that others were faster than twice.
var errOutpaced = errors.New("others change the lease faster than it is written")

// requestError returns the error of a request with the remedy, where it is known.
func (l *leases) requestError(verb string, err error) error {
	if err == nil {
		return nil
	}
	remedy := ""
	switch {
	case apierrors.IsForbidden(err) && !isTerminating(err):
		remedy = fmt.Sprintf(": grant the verb %s on leases of the API group coordination.k8s.io "+
			"in the namespace %s", verb, l.namespace)
	case apierrors.IsUnauthorized(err):
		remedy = ": check the credentials of the rest.Config"
	case apierrors.IsNotFound(err) && verb == "create":
		remedy = fmt.Sprintf(": create the namespace %s", l.namespace)
	}
	return fmt.Errorf("%s lease %s/%s: %w%s", verb, l.namespace, l.name, err, remedy)
}

// isTerminating reports whether a request was refused because its namespace is being deleted.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// needsUser reports whether a request fails until somebody changes the cluster or the program.
func needsUser(verb string, err error) bool {
	return apierrors.IsForbidden(err) && !isTerminating(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsInvalid(err) || verb == "create" && apierrors.IsNotFound(err)
}

// isOutdated reports whether a write failed because the lease is not as it was observed.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// isTimeout reports whether a request ended without an answer in time.
func isTimeout(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
