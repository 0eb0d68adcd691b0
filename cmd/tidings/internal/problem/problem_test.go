package problem_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/source"
)

var target = problem.Target{Server: "https://api.example:6443", Context: "staging", User: "ada", Configured: true, Kubeconfig: "/home/ada/.kube/config"}

func refused() error {
	return &url.Error{Op: "Get", URL: "https://api.example:6443/api", Err: &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: %w", syscall.ECONNREFUSED)}}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want []string
	}{
		{"refused", refused(), []string{`https://api.example:6443 (context "staging") does not answer: connection refused`, "kubectl config get-contexts"}},
		{"refused while listing", &source.Error{Op: "list", Resource: "pods.v1", Phase: source.Connecting, Err: refused()}, []string{"does not answer: connection refused"}},
		{"no such host", &url.Error{Op: "Get", URL: "https://x", Err: &net.DNSError{Name: "api.example", Err: "no such host", IsNotFound: true}}, []string{`no such host "api.example"`}},
		{"timeout", &url.Error{Op: "Get", URL: "https://x", Err: context.DeadlineExceeded}, []string{"no answer in time"}},
		{"forbidden discovery", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), []string{"kubectl auth can-i --list"}},
		{"certificate", &url.Error{Op: "Get", URL: "https://x", Err: x509.UnknownAuthorityError{}}, []string{"is not trusted", "certificate-authority"}},
		{"no TLS", &url.Error{Op: "Get", URL: "https://x", Err: http.ErrSchemeMismatch}, []string{"speaks HTTP, not HTTPS", "begin its address with http://"}},
		{"a web page", &url.Error{Op: "Get", URL: "https://x", Err: problem.NotKubernetesError("a web page")}, []string{"(context \"staging\") does not seem to be Kubernetes: it answers with a web page: check its address"}},
		{"anything else", errors.New("two\nlines"), []string{"two; lines"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := target.Explain(c.err)
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %s", want, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %s", err)
			}
			if !errors.Is(err, c.err) {
				t.Error("the explained error does not unwrap to its cause")
			}
			if problem.Code(err) != problem.CodeFault {
				t.Errorf("exit code %d", problem.Code(err))
			}
		})
	}
}

func TestExplainWithoutAnyCluster(t *testing.T) {
	err := problem.Target{Server: "http://localhost:8080", Kubeconfig: "/home/ada/.kube/config"}.Explain(refused())
	for _, want := range []string{"no cluster in /home/ada/.kube/config", "--kubeconfig", "tidings demo"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %s", want, err)
		}
	}
}

func TestLost(t *testing.T) {
	streaming := func(err error) error {
		return &source.Error{Op: "watch", Resource: "pods.v1", Phase: source.Streaming, Err: err}
	}
	for _, c := range []struct {
		err    error
		lost   bool
		reason string
	}{
		{refused(), true, "connection refused"},
		{streaming(io.ErrUnexpectedEOF), true, "the connection ended"},
		{streaming(fmt.Errorf("read: %w", syscall.ECONNRESET)), true, "the connection ended"},
		{streaming(errors.New("garbage")), false, "garbage"},
		{apierrors.NewInternalError(errors.New("x")), false, "Internal error occurred: x"},
	} {
		if got := problem.Lost(c.err); got != c.lost {
			t.Errorf("Lost(%v) = %v", c.err, got)
		}
		if got := problem.Reason(c.err); got != c.reason {
			t.Errorf("Reason(%v) = %q, want %q", c.err, got, c.reason)
		}
	}
}

func TestCodes(t *testing.T) {
	usage := problem.Usage("no %s", "type")
	if got := problem.Code(fmt.Errorf("wrapped: %w", usage)); got != problem.CodeUsage {
		t.Errorf("a usage error exits with %d", got)
	}
	if got := problem.Message(usage, "tidings watch"); got != "tidings: no type\nRun `tidings watch --help` for usage." {
		t.Errorf("message: %s", got)
	}
	if got := problem.Code(nil); got != problem.CodeOK {
		t.Errorf("no error exits with %d", got)
	}
	if target.Explain(nil) != nil || target.Explain(usage) != usage {
		t.Error("Explain changes what needs no explanation")
	}
}
