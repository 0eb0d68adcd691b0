package debug

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/source"
)

// failure is the cause that the errors of several informers and controllers can share. Its text is
// a sentence; "" is no such cause.
type failure string

// The failures.
const (
	noAnswer      failure = "The API server does not answer"
	serverError   failure = "The API server answers with errors"
	noCredentials failure = "The API server does not accept the credentials"
	noPermission  failure = "Permissions are missing"
	notServed     failure = "The API server does not serve a resource"
)

// unanswered are parts of the texts of errors without an answer.
var unanswered = []string{
	"connection refused", "connection reset", "no such host", "i/o timeout", "TLS handshake timeout",
	"no route to host", "network is unreachable", "broken pipe", "client connection lost",
	"Client.Timeout exceeded", "server sent GOAWAY", "EOF", "is the API server reachable?",
}

// answeredBadly are parts of the texts of answers with a status from 500 on, and 429.
var answeredBadly = []string{
	"unable to handle the request", "Internal error occurred", "etcdserver: ",
	"too many requests", "Too Many Requests", "Service Unavailable", "Gateway Timeout",
}

// failureOf returns the cause of an error that others can share.
func failureOf(err error) failure {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return ""
	case errors.Is(err, source.ErrSilent):
		return noAnswer
	case !errors.As(err, &status):
		return failureOfText(err.Error())
	case apierrors.IsUnauthorized(err):
		return noCredentials
	case apierrors.IsForbidden(err):
		return noPermission
	case apierrors.IsNotFound(err):
		return notServed
	case status.Status().Code >= http.StatusInternalServerError, apierrors.IsTooManyRequests(err):
		return serverError
	}
	return ""
}

// failureOfText does this for an error of which only the text is known, as of the last call of a
// controller.
func failureOfText(text string) failure {
	isIn := func(parts []string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case isIn(unanswered):
		return noAnswer
	case isIn(answeredBadly):
		return serverError
	}
	return ""
}
