package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

const (
	// readyTimeout bounds the start of a server, which takes two or three seconds on an idle
	// machine.
	readyTimeout = 2 * time.Minute
	// readyInterval is the period of the checks whether a server is ready.
	readyInterval = 50 * time.Millisecond
	// attempts is the number of ports that are tried. Another process may take a free port before
	// the server listens on it.
	attempts = 5
)

// Options are the choices of a [Server]. The zero value is ready.
type Options struct {
	// Version is the minor version of Kubernetes: "1.35", "1.36" or "1.37". "" is that of [Version].
	Version string
	// Arguments are additional flags of kube-apiserver, such as "--feature-gates=…". They come
	// after the flags that the package sets.
	Arguments []string
	// Output receives the output of the server, and of each one of AddInstance from a goroutine of
	// its own; nil discards it. Errors and the logs of failed tests have the end of the output.
	Output io.Writer
}

// Server is a kube-apiserver and its etcd, in a process of their own. [New] and [Start] make it.
// [Server.AddInstance] makes a server without an etcd, which uses the etcd of another server.
type Server struct {
	storage   *Server // the server with the etcd; nil for a server with its own
	options   Options
	program   string
	dir       string // for certificates, sockets and data
	port      int
	authority *authority
	admin     *rest.Config
	output    output

	mu      sync.Mutex // held while the server starts or ends; guards the rest
	backups int        // the number of the last one
	running *process   // nil while it does not run
	closed  bool
	others  []*Server // before the same etcd
}

// New starts a server and returns when it is ready. The end of ctx ends the wait, but not the
// server: that ends with Close. The first call on a machine builds the server, see [Build].
func New(ctx context.Context, o Options) (*Server, error) {
	program, err := Build(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	// The paths of Unix sockets must be short: a test's own directory may be too long.
	dir, err := os.MkdirTemp("", "kube-")
	if err != nil {
		return nil, fmt.Errorf("apiserver: no directory for the data: %w", err)
	}
	s := &Server{options: o, program: program, dir: dir, output: output{next: o.Output}}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// AddInstance starts another kube-apiserver before the etcd of this server, which has to run. The
// new server has the same options, and a process and an address of its own. AddInstance returns
// when it is ready, and stops waiting when ctx ends. The new server may be killed and started again
// without this one; it has no Backup. Close of this server closes it too.
func (s *Server) AddInstance(ctx context.Context) (*Server, error) {
	i := &Server{
		storage: s, options: s.options, program: s.program, dir: s.dir, authority: s.authority,
		output: output{next: s.options.Output},
	}
	if err := i.begin(ctx); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = append(s.others, i)
	return i, nil
}

// begin starts the server for the first time.
func (s *Server) begin(ctx context.Context) (err error) {
	for range attempts {
		if err = s.choosePort(); err != nil {
			break
		}
		err = s.Restart(ctx)
		if err == nil || !strings.Contains(s.output.String(), "address already in use") {
			break
		}
	}
	return err
}

// prepare writes the certificates.
func (s *Server) prepare() error {
	var err error
	if s.authority, err = newAuthority(); err != nil {
		return fmt.Errorf("apiserver: make an authority for certificates: %w", err)
	}
	serving, err := s.authority.server()
	if err != nil {
		return err
	}
	accounts, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("apiserver: make a key for service accounts: %w", err)
	}
	for name, data := range map[string][]byte{
		"ca.crt": s.authority.pem, "server.crt": serving.certificate, "server.key": serving.key,
		"accounts.key": accounts,
	} {
		if err := os.WriteFile(s.path(name), data, 0o600); err != nil {
			return fmt.Errorf("apiserver: %w", err)
		}
	}
	return nil
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// choosePort takes a port that is free now.
func (s *Server) choosePort() error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("apiserver: no free port: %w", err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	s.admin, err = s.ConfigFor("admin", "system:masters")
	return err
}

// URL returns the server's address, which does not change when the server is started again.
func (s *Server) URL() string {
	return "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// ConfigFor returns the configuration of a client with the certificate of a user in some groups.
// RBAC rules decide the user's permissions; the group "system:masters" has all of them.
func (s *Server) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	client, err := s.authority.user(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: s.URL(),
		QPS:  -1, // the server limits by itself
		TLSClientConfig: rest.TLSClientConfig{
			CAData: slices.Clone(s.authority.pem), CertData: client.certificate, KeyData: client.key,
		},
	}, nil
}

// Config returns the configuration of a client with all permissions.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.admin) }

// Etcd returns the endpoint of etcd, for its own client.
func (s *Server) Etcd() string { return "unix://" + s.path("etcd") }

// Kill ends the server as a crash does, with SIGKILL, and returns when it has ended. Its data stays
// for [Server.Restart]. For a server that does not run, Kill does nothing. It returns an error if
// the server has ended by itself.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killLocked()
}

func (s *Server) killLocked() error {
	if s.running == nil {
		return nil
	}
	p := s.running
	s.running = nil
	if err := p.failure(); err != nil {
		return fmt.Errorf("apiserver: kube-apiserver had ended before it was killed: %w\n%s",
			err, s.output.String())
	}
	return p.kill()
}

// Signal sends a signal, such as SIGSTOP, to the process of the server. It returns an error if the
// server does not run.
func (s *Server) Signal(signal os.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return errors.New("apiserver: the server does not run")
	}
	return s.running.command.Process.Signal(signal)
}

// Restart starts the server again, with the same data and at the same address, and returns when it
// is ready. A server that runs is killed first. The end of ctx ends the wait.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restartLocked(ctx)
}

func (s *Server) restartLocked(ctx context.Context) error {
	if err := s.killLocked(); err != nil {
		return err
	}
	if s.closed {
		return errors.New("apiserver: the server is closed: start a new one")
	}
	p, err := start(s.program, s.arguments(), &s.output)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, p); err != nil {
		return errors.Join(err, p.kill())
	}
	s.running = p
	return nil
}

func (s *Server) arguments() []string {
	data := s.path("data")
	if s.storage != nil {
		data = ""
	}
	all := []string{
		"--data", data, "--etcd-socket", s.path("etcd"), "--",
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(s.port),
		"--tls-cert-file=" + s.path("server.crt"), "--tls-private-key-file=" + s.path("server.key"),
		"--client-ca-file=" + s.path("ca.crt"), "--authorization-mode=RBAC",
		"--service-account-issuer=" + s.URL(),
		"--service-account-key-file=" + s.path("accounts.key"),
		"--service-account-signing-key-file=" + s.path("accounts.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true", // as in clusters that kubeadm makes
		// A service may not have a loopback address.
		"--endpoint-reconciler-type=none",
	}
	const off = "--disable-admission-plugins"
	isOff := func(argument string) bool { return strings.HasPrefix(argument, off) }
	if !slices.ContainsFunc(s.options.Arguments, isOff) {
		all = append(all, off+"=ServiceAccount")
	}
	return append(all, s.options.Arguments...)
}

// awaitReady waits until the server is ready.
func (s *Server) awaitReady(ctx context.Context, p *process) error {
	ctx, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	client, err := rest.HTTPClientFor(s.admin)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	var last error
	for {
		if last = ready(ctx, client, s.URL()); last == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("apiserver: kube-apiserver has ended: %w\n%s", p.err, s.output.String())
		case <-ctx.Done():
			return fmt.Errorf("apiserver: kube-apiserver is not ready: %w (%w)\n%s",
				context.Cause(ctx), last, s.output.String())
		case <-ticker.C:
		}
	}
}

func ready(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s: %s", response.Status, body)
	}
	return nil
}

// Close ends the server and those of AddInstance, and deletes the data. It may be called more than
// once.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, other := range s.others {
		errs = append(errs, other.Close())
	}
	errs = append(errs, s.killLocked())
	s.closed = true
	if s.storage == nil {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
