package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// anyPort is a free address that only this machine reaches.
const anyPort = "127.0.0.1:0"

// server is a simulated API server that listens, with a kubeconfig. A server with users listens
// over TLS, since clients send tokens in no other way.
type server struct {
	*apisim.Server
	users      []apisim.User // none lets everybody do everything
	authority  []byte        // of the certificate, in PEM; nil without TLS
	url        string        // the address
	local      string        // the address for this machine
	kubeconfig *kubeconfig
	injected   []*apisim.Injection // in the order of the flags
}

// listen makes the server reachable. It warns if other machines reach it.
func (s *server) listen(address string, screen *view.Screen) (err error) {
	if len(s.users) > 0 {
		s.url, s.authority, err = s.ListenTLS(address)
	} else {
		s.url, err = s.Listen(address)
	}
	if err != nil {
		reason := strings.TrimPrefix(err.Error(),
			fmt.Sprintf("apisim: cannot listen on %s: ", address))
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			reason = errno.Error()
		}
		return problem.Reworded(fmt.Sprintf("the API server cannot listen on %s: %s: "+
			"choose another address with --listen, such as 127.0.0.1:8080", address, reason), err)
	}
	u, err := url.Parse(s.url)
	if err != nil {
		return err
	}
	s.local = s.url
	ip, err := netip.ParseAddr(u.Hostname())
	if err == nil && ip.IsLoopback() {
		return nil
	}
	if err == nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
		s.local = u.String()
	}
	if len(s.users) > 0 {
		return nil
	}
	screen.Note(fmt.Sprintf("tidings: everybody who reaches %s may read and write "+
		"everything there, "+
		"without credentials: --listen %s makes it private to this machine", s.url, anyPort))
	return nil
}

// String returns the address, and the one for this machine if it differs.
func (s *server) String() string {
	if s.local == s.url {
		return s.url
	}
	return fmt.Sprintf("%s (%s from this machine)", s.url, s.local)
}

// close ends the server and removes a temporary kubeconfig.
func (s *server) close() error {
	err := s.Close()
	if s.kubeconfig != nil {
		err = errors.Join(err, s.kubeconfig.remove())
	}
	return err
}

// onlyPrograms returns a handler that answers no web page. The servers require no credentials, so
// that without it any page in a browser on this machine could read and write there:
//
//  1. The Host of a connection to the loopback address has to be that address. The Host of a page
//     whose name resolves to this machine is another one.
//  2. A request of a page of another origin is refused.
//  3. A body needs a content type that a page can only send to another origin after a preflight
//     request.
func onlyPrograms(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		switch {
		case local != nil && local.IP.IsLoopback() && !isLoopback(r.Host):
			refuse(w, http.StatusMisdirectedRequest, metav1.StatusReasonForbidden,
				fmt.Sprintf("the Host %q is not this machine: use localhost or 127.0.0.1", r.Host))
		case isCrossOrigin(r):
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

// isLoopback reports whether a Host names this machine's loopback address.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") ||
		err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// isCrossOrigin reports whether a browser says that a page of another origin made a request.
func isCrossOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site":
		return true
	}
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || u.Scheme != "http" ||
			!strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

// isSimpleType reports whether a page may send a content type to another origin without a
// preflight request.
func isSimpleType(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(mediaType)) {
	case "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data":
		return true
	}
	return false
}

// refuse answers with a Status.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{ //nolint:errcheck // the client has gone
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// say prints a line of a command about its server.
func say(screen *view.Screen, format string, args ...any) error {
	return screen.Print(screen.Palette().Dim("── ") + fmt.Sprintf(format, args...) + "\n")
}

// writeKubeconfig writes the kubeconfig of the server, which close removes if it is temporary.
func (s *server) writeKubeconfig(path, namespace string) (err error) {
	s.kubeconfig, err = writeKubeconfig(path, s.clientConfig(namespace))
	return err
}

// publish writes the kubeconfig and prints its path.
func (s *server) publish(path, namespace string, screen *view.Screen) error {
	if err := s.writeKubeconfig(path, namespace); err != nil {
		return err
	}
	return say(screen, "for kubectl in another terminal: export KUBECONFIG=%s",
		shellQuoted(s.kubeconfig.path))
}

// rewordServer returns an error of the server in the words of the command line.
func rewordServer(prefix, hint string, err error) error {
	return problem.Reworded(prefix+strings.TrimPrefix(err.Error(), "apisim: ")+hint, err)
}
