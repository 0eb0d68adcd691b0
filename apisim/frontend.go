package apisim

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// frontend holds the listeners and connections of an API server.
type frontend struct {
	server    *Server
	pipe      *pipeListener
	transport *http.Transport
	http      *http.Server
}

// begin makes the frontend serve connections through memory, for an instance or, if that is nil,
// for the server.
func (f *frontend) begin(s *Server, of *Instance) {
	f.server, f.pipe = s, newPipeListener()
	f.transport = &http.Transport{DialContext: f.pipe.dial, MaxIdleConnsPerHost: 100}
	base := context.WithValue(context.Background(), instanceKey{}, of)
	f.http = &http.Server{
		Handler: s, ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return base },
	}
}

// Config returns a client configuration that reaches the server through memory, without a
// port and without a rate limit. It works within a testing/synctest bubble.
func (f *frontend) Config() *rest.Config { return clientConfig(f.transport) }

func clientConfig(t *http.Transport) *rest.Config {
	return &rest.Config{Host: "http://apisim.invalid", Transport: t, QPS: -1}
}

// Listen makes the server reachable over TCP as well and returns its URL. Port 0 in the address
// stands for a free one.
func (f *frontend) Listen(address string) (url string, err error) {
	return f.listenTCP(address, nil)
}

// ListenTLS is Listen over TLS. It makes a certificate for this machine and for the address, and
// returns it in PEM as the certificate authority for clients. kubectl and other clients with a
// kubeconfig send the token of a user over TLS only.
func (f *frontend) ListenTLS(address string) (url string, authority []byte, err error) {
	host, _, _ := net.SplitHostPort(address) // net.Listen returns the error
	authority, key, err := cert.GenerateSelfSignedCertKey(cmp.Or(host, "localhost"),
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, []string{"localhost"})
	var certificate tls.Certificate
	if err == nil {
		certificate, err = tls.X509KeyPair(authority, key)
	}
	if err != nil {
		return "", nil, fmt.Errorf("apisim: cannot make a certificate for %s: %w", address, err)
	}
	url, err = f.listenTCP(address, &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"},
	})
	return url, authority, err
}

// listenTCP serves a TCP address until Close, over TLS if secure is not nil.
func (f *frontend) listenTCP(address string, secure *tls.Config) (url string, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", fmt.Errorf("apisim: cannot listen on %s: %w", address, err)
	}
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	if f.server.closed {
		listener.Close() //nolint:errcheck // the listener was not used
		return "", errClosed
	}
	var served net.Listener = tcpListener{listener, f.pipe}
	scheme := "http"
	if secure != nil {
		served, scheme = tls.NewListener(served, secure), "https"
	}
	f.listen(served)
	return scheme + "://" + listener.Addr().String(), nil
}

// listen serves the connections of a listener until Close.
func (f *frontend) listen(l net.Listener) {
	f.server.serving.Go(func() { f.http.Serve(l) }) //nolint:errcheck // the error is that l is closed
}

// cut closes all connections at one time, and the idle connections of the clients in this process:
// before, as a client that comes back at once would lose another connection to the same cut, and
// after, as net/http repeats a write only if no part of it was sent, and a test that writes straight
// after a cut would use a dead connection now and then.
func cut(all ...*frontend) {
	closeIdle := func() {
		for _, f := range all {
			f.transport.CloseIdleConnections()
		}
	}
	closeIdle()
	var open []*connection
	for _, f := range all {
		open = append(open, f.pipe.connections()...)
	}
	for _, c := range open {
		c.Close() //nolint:errcheck // the connection ends in any case
	}
	closeIdle()
}
