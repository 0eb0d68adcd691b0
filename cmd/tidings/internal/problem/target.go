package problem

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings/source"
)

// Target is the cluster of a command, as the kubeconfig describes it.
type Target struct {
	// Server is the address of the cluster. Context and User are names in the kubeconfig; "" means
	// unknown.
	Server, Context, User string
	// Configured reports whether a kubeconfig, a flag or the pod of the command names the server.
	Configured bool
	// ClusterScoped reports whether the requested objects have no namespace.
	ClusterScoped bool
	// Kubeconfig is the file, or the files, that were read.
	Kubeconfig string
}

// NotKubernetesError describes an answer that no Kubernetes API server gives, as in "a web page".
type NotKubernetesError string

func (e NotKubernetesError) Error() string { return "the server answers with " + string(e) }

// Explain returns err with a line that describes the problem and its remedy. An error that it
// cannot explain keeps its text, in one line.
func (t Target) Explain(err error) error {
	if err == nil || isUsage(err) {
		return err
	}
	return Reworded(OneLine(t.line(err)), err)
}

func (t Target) line(err error) string {
	foreign, isForeign := errors.AsType[NotKubernetesError](err)
	_, isOfSource := errors.AsType[*source.Error](err)
	switch {
	case clientcmd.IsEmptyConfig(err), !t.Configured && (unreachable(err) || isForeign):
		return t.noCluster()
	case clientcmd.IsConfigurationInvalid(err):
		return fmt.Sprintf("the kubeconfig %s is not valid: %v", t.Kubeconfig, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%s does not accept the credentials%s: log in again, or choose another "+
			"context (`kubectl config get-contexts`)", t.server(), t.ofUser())
	case apierrors.IsForbidden(err):
		return t.forbidden(err)
	case untrusted(err):
		return fmt.Sprintf("the certificate of %s is not trusted: %v: check the cluster's "+
			"certificate-authority in the kubeconfig, or --certificate-authority",
			t.server(), innermost(err))
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Sprintf("%s speaks HTTP, not HTTPS: begin its address with http:// in the "+
			"kubeconfig, or with --server", t.server())
	case isForeign:
		return fmt.Sprintf("%s does not seem to be Kubernetes: it answers with %s: check its "+
			"address in the kubeconfig or --server, and the proxy if there is one",
			t.server(), string(foreign))
	case unreachable(err):
		return fmt.Sprintf("%s does not answer: %s: is the cluster running, and is this the right "+
			"context? (`kubectl config get-contexts`)", t.server(), Reason(err))
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return fmt.Sprintf("%s refuses the request: %v: check --selector and --field-selector",
			t.server(), innermost(err))
	case isOfSource && apierrors.IsNotFound(err):
		return fmt.Sprintf("%s no longer has %s: `kubectl api-resources` lists its types",
			t.server(), resourceOf(err))
	}
	return err.Error()
}

func (t Target) noCluster() string {
	where := "no kubeconfig was found"
	if t.Kubeconfig != "" {
		where = "there is no cluster in " + t.Kubeconfig
	}
	return where + ": name one with --kubeconfig, --context or --server (`kubectl config " +
		"get-contexts`), or try `tidings demo`, which needs none"
}

func (t Target) server() string {
	name := "the API server"
	if t.Server != "" {
		name += " " + t.Server
	}
	if t.Context != "" {
		name += fmt.Sprintf(" (context %q)", t.Context)
	}
	return name
}

func (t Target) ofUser() string {
	if t.User == "" {
		return ""
	}
	return fmt.Sprintf(" of user %q", t.User)
}

// forbidden returns a line about a missing permission and a command that checks it.
func (t Target) forbidden(err error) string {
	sourceErr, ok := errors.AsType[*source.Error](err)
	if !ok {
		return fmt.Sprintf("%s forbids it to these credentials%s: %v: `kubectl auth can-i --list` "+
			"says what they may do", t.server(), t.ofUser(), innermost(err))
	}
	resource, scope, where := resourceOf(err), " -A", " in all namespaces"
	switch {
	case t.ClusterScoped:
		scope, where = "", ""
	case sourceErr.Namespace != "":
		scope = " -n " + sourceErr.Namespace
		where = fmt.Sprintf(" in namespace %q", sourceErr.Namespace)
	}
	return fmt.Sprintf("the credentials%s may not list and watch %s%s on %s: ask for a role that "+
		"may; `kubectl auth can-i list %s%s` checks it",
		t.ofUser(), resource, where, t.server(), resource, scope)
}

// resourceOf returns the resource of a request in the form of kubectl, without the version.
func resourceOf(err error) string {
	sourceErr, ok := errors.AsType[*source.Error](err)
	if !ok {
		return "such type"
	}
	parts := strings.SplitN(sourceErr.Resource, ".", 3)
	if len(parts) < 3 {
		return parts[0]
	}
	return parts[0] + "." + parts[2]
}

// Unreachable reports whether err means that the server did not answer, or cannot be trusted.
func Unreachable(err error) bool { return unreachable(err) || untrusted(err) }

// Lost reports whether err means that the server does not answer or that a connection to it broke.
func Lost(err error) bool {
	return Unreachable(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

func unreachable(err error) bool {
	if sourceErr, ok := errors.AsType[*source.Error](err); ok &&
		sourceErr.Phase == source.Connecting {
		return !errors.Is(err, source.ErrWrongScope) &&
			!errors.Is(err, source.ErrStreamedListRefused)
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return utilnet.IsConnectionRefused(err) || errors.Is(err, syscall.EHOSTUNREACH) ||
		errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err)
}

// untrusted reports whether err is about the certificate of the server.
func untrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) ||
		errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.HostnameError))
}

// Reason describes in a few words why a server did not answer.
func Reason(err error) string {
	const ended = "server closed idle connection" // net/http does not export it
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) || strings.HasSuffix(err.Error(), ended) {
			return "the connection ended"
		}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("no such host %q", dns.Name)
	}
	if netErr, ok := errors.AsType[net.Error](err); ok && netErr.Timeout() {
		return "no answer in time"
	}
	return innermost(err).Error()
}

// innermost returns the error without the parts that describe the request.
func innermost(err error) error {
	if sourceErr, ok := errors.AsType[*source.Error](err); ok {
		err = sourceErr.Err
	}
	if urlErr, ok := errors.AsType[*url.Error](err); ok {
		err = urlErr.Err
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status
	}
	return err
}
