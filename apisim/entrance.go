package apisim

import (
	"context"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// entrance holds the listeners and connections of an API server.
type entrance struct {
	pipe      *pipeListener
	transport *http.Transport
	http      *http.Server
	conns     connections
}

// begin makes the entrance one through memory. The contexts of its requests are of base.
func (e *entrance) begin(s *Server, pipe *pipeListener, base context.Context) {
	e.pipe = pipe
	e.transport = &http.Transport{DialContext: e.pipe.dial, MaxIdleConnsPerHost: 100}
	e.http = &http.Server{
		Handler: s, ReadHeaderTimeout: time.Minute, ConnState: e.conns.observe,
		BaseContext: func(net.Listener) context.Context { return base },
	}
}

func (e *entrance) config() *rest.Config { return clientConfig(e.transport) }

// clientConfig returns the configuration of a client without a rate limit.
func clientConfig(t *http.Transport) *rest.Config {
	return &rest.Config{Host: "http://apisim.invalid", Transport: t, QPS: -1}
}

// cut closes all connections, and makes the clients in this process forget idle ones:
// net/http repeats a write only if nothing of it was sent, and a test that writes straight
// after a cut would find the dead connection now and then.
func (e *entrance) cut() {
	e.conns.cut()
	e.transport.CloseIdleConnections()
}

// setDown refuses connections, closing all there are, or accepts them again.
func (e *entrance) setDown(down bool) {
	e.pipe.setDown(down, time.Time{})
	if down {
		e.cut()
	}
}

// listen serves the connections of a listener until Close.
func (s *Server) listen(e *entrance, l net.Listener) {
	s.serving.Go(func() { e.http.Serve(l) }) //nolint:errcheck // the error says that l is closed
}
