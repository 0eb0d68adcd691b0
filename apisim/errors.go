package apisim

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var errModified = errors.New("the object has been modified; " +
	"please apply your changes to the latest version and try again")

// errGeneric returns a refusal with the text that Kubernetes has for a code, or with a message.
func errGeneric(code int, message string) *apierrors.StatusError {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", message, 0, false)
}

func errNoResource() *apierrors.StatusError { return errGeneric(http.StatusNotFound, "") }

func errNotFound(r *resource, name string) error {
	return apierrors.NewNotFound(r.groupResource(), name)
}

func errInvalid(r *resource, name string, problems ...*field.Error) error {
	return apierrors.NewInvalid(r.gvk().GroupKind(), name, problems)
}

func errInvalidOptions(kind string, problems field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
}

func errExpired(version, floor uint64) error {
	return apierrors.NewResourceExpired(
		fmt.Sprintf("too old resource version: %d (%d)", version, floor))
}

func errTooNew(version, current uint64) error {
	err := apierrors.NewTimeoutError(
		fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

func errUnsupportedBody(accepted []string) error {
	return errGeneric(http.StatusUnsupportedMediaType, "the body of the request was in an unknown "+
		"format - accepted media types include: "+strings.Join(accepted, ", "))
}

func errUnhandled(want schema.GroupVersionKind, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
		want.Kind, want.Version, want.Kind, err))
}

func errWrongKind(got, want schema.GroupVersionKind) error {
	if got.GroupVersion() != want.GroupVersion() {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match "+
			"the expected API version (%s)", got.GroupVersion(), want.GroupVersion()))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: "+
		"the path is for another kind", got.Kind, got.Version, want.Kind))
}

func errInjected(code int, c *inflight, retryAfter time.Duration) error {
	if code < 100 || code > 999 { // no code of HTTP
		code = http.StatusInternalServerError
	}
	seconds := int(retryAfter / time.Second)
	if retryAfter%time.Second > 0 {
		seconds++
	}
	err := apierrors.NewGenericServerResponse(code, c.asked.Verb, c.path.gvr.GroupResource(),
		c.path.name, "a fault was injected", seconds, false)
	if code == http.StatusGone {
		err.ErrStatus.Reason = metav1.StatusReasonExpired
		err.ErrStatus.Message = "too old resource version: a fault was injected"
	}
	return err
}

func statusFor(err error) *metav1.Status {
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &status
}
