package apisim

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errNoResource is the answer to a path that names no resource.
func errNoResource() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}

// errExpired is the answer to a version that the history no longer reaches.
func errExpired(version, floor uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, floor))
}

// errTooNew is the answer to a version that the server has not reached.
func errTooNew(version, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func errMethod(method string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("the server does not allow the method %s on the requested resource", method), Details: &metav1.StatusDetails{},
	}}
}

func errNotAcceptable(accept string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: fmt.Sprintf("only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf (asked for %q)", accept),
	}}
}

func errUnsupportedBody(contentType string, accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s (got %q)", strings.Join(accepted, ", "), contentType),
	}}
}

// statusOfCode returns the Status with which Kubernetes answers a request in that way.
func statusOfCode(code int, p requestPath, retryAfter time.Duration) metav1.Status {
	resource, seconds := p.gvr.GroupResource(), int((retryAfter+time.Second-1)/time.Second)
	var err *apierrors.StatusError
	switch code {
	case http.StatusUnauthorized:
		err = apierrors.NewUnauthorized("Unauthorized")
	case http.StatusForbidden:
		err = apierrors.NewForbidden(resource, p.name, errors.New("a fault was injected"))
	case http.StatusNotFound:
		err = errNoResource().(*apierrors.StatusError)
		if p.name != "" {
			err = apierrors.NewNotFound(resource, p.name)
		}
	case http.StatusConflict:
		err = apierrors.NewConflict(resource, p.name, errModified)
	case http.StatusGone:
		err = apierrors.NewResourceExpired("too old resource version: a fault was injected")
	case http.StatusTooManyRequests:
		err = apierrors.NewTooManyRequests("too many requests, please try again later", seconds)
	case http.StatusInternalServerError:
		err = apierrors.NewInternalError(errors.New("a fault was injected"))
	case http.StatusServiceUnavailable:
		err = apierrors.NewServiceUnavailable("the server is currently unable to handle the request: a fault was injected")
	case http.StatusGatewayTimeout:
		err = apierrors.NewTimeoutError("a fault was injected", seconds)
	default:
		err = apierrors.NewGenericServerResponse(code, "", resource, p.name, "a fault was injected", seconds, true)
	}
	if seconds > 0 {
		if err.ErrStatus.Details == nil {
			err.ErrStatus.Details = &metav1.StatusDetails{}
		}
		err.ErrStatus.Details.RetryAfterSeconds = int32(seconds)
	}
	err.ErrStatus.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return err.ErrStatus
}

// statusFor returns the Status of an error.
func statusFor(err error) *metav1.Status {
	var status *metav1.Status
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		copied := known.Status()
		status = &copied
	} else {
		status = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}
