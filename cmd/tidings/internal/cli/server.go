package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/metrics"
)

// anyPort is an address with a free port, which only this machine reaches.
const anyPort = "127.0.0.1:0"

// server is a simulated API server that listens, with a kubeconfig. A server with users listens
// over TLS, since clients send tokens over TLS only.
type server struct {
	*apisim.Server
	users      []apisim.User // none: every client has all rights
	authority  []byte        // of the certificate, in PEM; nil without TLS
	url        string        // the address
	local      string        // the address for this machine
	kubeconfig string        // the path of the file
	temporary  string        // the directory of a temporary kubeconfig
}

func addServer(cmd *cobra.Command, listen, kubeconfig *string) {
	cmd.Flags().StringVar(listen, "listen", anyPort,
		"the address of the API server; port 0 means a free one")
	cmd.Flags().StringVar(kubeconfig, "write-kubeconfig", "", "write the kubeconfig of the server to "+
		"this file (default a temporary one, whose path is printed)")
}

// listen makes the server reachable. It warns if other machines can reach it.
func (s *server) listen(address string, screen *view.Screen) (err error) {
	if len(s.users) > 0 {
		s.url, s.authority, err = s.ListenTLS(address)
	} else {
		s.url, err = s.Listen(address)
	}
	if err != nil {
		return cannotListen(address, err)
	}
	u, err := url.Parse(s.url)
	if err != nil {
		return err
	}
	s.local = s.url
	ip, err := netip.ParseAddr(u.Hostname())
	if err == nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
		s.local = u.String()
	}
	if len(s.users) == 0 && !(err == nil && ip.IsLoopback()) {
		screen.Note(fmt.Sprintf("tidings: everybody who reaches %s may read and write everything there, "+
			"without credentials: --listen %s makes it private to this machine", s.url, anyPort))
	}
	return nil
}

// checkAddress returns an error for an address at which nothing can listen, before work that takes long.
// because makes it one of the command line.
func checkAddress(address string, because func(address string, err error) error) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return because(address, err)
	}
	return listener.Close()
}

func cannotListen(address string, err error) error {
	reason := strings.TrimPrefix(err.Error(), fmt.Sprintf("apisim: cannot listen on %s: ", address))
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		reason = errno.Error()
	}
	return problem.Reworded(fmt.Sprintf("the API server cannot listen on %s: %s: "+
		"choose another address with --listen, such as 127.0.0.1:8080", address, reason), err)
}

// String returns the address, and the address for this machine if it differs.
func (s *server) String() string {
	if s.local == s.url {
		return s.url
	}
	return fmt.Sprintf("%s (%s from this machine)", s.url, s.local)
}

func (s *server) close() error {
	return errors.Join(s.Close(), os.RemoveAll(s.temporary)) // "" removes nothing
}

// onlyPrograms returns a handler that refuses requests of web pages. The servers require no
// credentials. Without the handler, any page in a browser on this machine could read and write
// there:
//
//  1. A connection to the loopback address needs a Host that is that address. The Host of a page
//     whose name resolves to this machine differs.
//  2. A request of a page of another origin is refused.
//  3. A body needs a content type that a page of another origin can send only after a preflight
//     request.
func onlyPrograms(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		write := r.WithContext(r.Context())
		write.Method = http.MethodPost // Check accepts every GET
		switch {
		case local != nil && local.IP.IsLoopback() && !isLoopback(r.Host):
			refuse(w, http.StatusMisdirectedRequest, metav1.StatusReasonForbidden,
				fmt.Sprintf("the Host %q is not this machine: use localhost or 127.0.0.1", r.Host))
		case protection.Check(write) != nil:
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden,
				"a web page of another origin may not use this server")
		case r.ContentLength != 0 && isSimpleType(r.Header.Get("Content-Type")):
			refuse(w, http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
				"a body needs the Content-Type of an object, such as application/json")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether a Host is this machine's loopback address.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") ||
		err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// isSimpleType reports whether a page may send a content type to another origin without a preflight
// request.
func isSimpleType(contentType string) bool {
	mediaType, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	return slices.Contains([]string{
		"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
	}, strings.TrimSpace(mediaType))
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{ //nolint:errcheck // the client is gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// say prints a line of a command about its server.
func say(screen *view.Screen, format string, args ...any) error {
	return screen.Print(screen.Palette().Dim("── ") + fmt.Sprintf(format, args...) + "\n")
}

// publish writes the kubeconfig, which close removes if it is temporary, and prints its path.
func (s *server) publish(path, namespace string, screen *view.Screen) error {
	if err := s.writeKubeconfig(path, namespace); err != nil {
		return err
	}
	return say(screen, "for kubectl in another terminal: export KUBECONFIG=%s", shellQuoted(s.kubeconfig))
}

// rewordServer returns an error of the server in terms of the command line.
func rewordServer(prefix, hint string, err error) error {
	return problem.Reworded(prefix+strings.TrimPrefix(err.Error(), "apisim: ")+hint, err)
}

func cannotServePages(address string, err error) error {
	return problem.Reworded(fmt.Sprintf("the page cannot be served at %s: %v: choose another "+
		"address with --page, such as %s", address, err, anyPort), err)
}

// servePages serves pages of sources at the address of the flag --page, and their metrics at
// /metrics, until stop is called.
func servePages(address string, o debug.Options, sources ...any) (url string, stop func(), err error) {
	collector, registry := metrics.New(metrics.Options{}), prometheus.NewRegistry()
	pages := debug.New(o)
	err = errors.Join(pages.Add(sources...), collector.Add(sources...), registry.Register(collector))
	if err != nil {
		pages.Close()
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		pages.Close()
		return "", nil, cannotServePages(address, err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: stopTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(listener) //nolint:errcheck // Serve ends with Close
	}()
	return fmt.Sprintf("http://%s/", listener.Addr()), func() {
		pages.Close()
		server.Close() //nolint:errcheck // the command has ended
		<-served
	}, nil
}
