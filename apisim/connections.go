package apisim

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// pipeListener accepts connections through memory. It refuses them, and those of TCP
// listeners, while the server is unavailable.
type pipeListener struct {
	accepted chan net.Conn
	closed   chan struct{} // by Close, which net/http calls once

	mu        sync.Mutex // guards the rest
	down      bool
	downUntil time.Time
}

func newPipeListener() *pipeListener {
	return &pipeListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// dial connects a client, as net.Dialer.DialContext does.
func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	if !l.isAvailable() {
		return nil, refused
	}
	client, server := net.Pipe()
	select {
	case l.accepted <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) isAvailable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.down && !time.Now().Before(l.downUntil)
}

func (l *pipeListener) setDown(down bool, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.downUntil = down, until
}

// Accept returns the server's end of the next connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections.
func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

// Addr returns an address without a meaning.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "apisim.invalid", Net: "pipe"} }

// tcpListener drops the connections that come while the server is unavailable.
type tcpListener struct {
	net.Listener
	pipe *pipeListener
}

// Accept returns the next connection that comes while the server is available.
func (l tcpListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.pipe.isAvailable() {
			return conn, err
		}
		conn.Close() //nolint:errcheck // it was not used
	}
}

// connections holds the open connections of the server.
type connections struct {
	mu   sync.Mutex // guards open
	open map[net.Conn]struct{}
}

func (c *connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.open == nil {
			c.open = make(map[net.Conn]struct{})
		}
		c.open[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.Close() //nolint:errcheck // it is cut
	}
}
