package apisim

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// pipeListener hands out connections through memory. It also knows whether the
// server can be reached at all.
type pipeListener struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    sync.Once

	mu        sync.Mutex // guards the rest
	away      bool
	awayUntil time.Time
}

func newPipeListener() *pipeListener {
	return &pipeListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// dial connects a client, as net.Dialer.DialContext does.
func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	if !l.reachable() {
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

func (l *pipeListener) reachable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.away && !time.Now().Before(l.awayUntil)
}

func (l *pipeListener) setAway(away bool, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away, l.awayUntil = away, until
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
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that names no place.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "apisim.invalid:80" }

// gatedListener drops the connections that come while the server is away.
type gatedListener struct {
	net.Listener
	gate *pipeListener
}

// Accept returns the next connection that finds the server reachable.
func (l gatedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.gate.reachable() {
			return conn, err
		}
		conn.Close() //nolint:errcheck // the point is that it is gone
	}
}

// connections knows the open connections of the server, to cut them.
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

// cut closes every connection, whatever is being written.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.Close() //nolint:errcheck // the point is that it is gone
	}
}
