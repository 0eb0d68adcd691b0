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
	gate     gate

	storage *pipeListener // of an instance: nothing can be reached while that is unavailable

	mu        sync.Mutex // guards the rest
	down      bool
	downUntil time.Time
}

func newPipeListener() *pipeListener {
	return &pipeListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// errRefused is the error of a connection to a server that is unavailable.
var errRefused = &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}

// dial connects a client, as net.Dialer.DialContext does.
func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if !l.isAvailable() {
		return nil, errRefused
	}
	client, server := net.Pipe()
	select {
	case l.accepted <- l.gate.conn(server):
		return client, nil
	case <-l.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) isAvailable() bool {
	if l.storage != nil && !l.storage.isAvailable() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.down && !time.Now().Before(l.downUntil)
}

// setDown refuses connections for good or until a time, and returns whether it did so for good
// before.
func (l *pipeListener) setDown(down bool, until time.Time) (was bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = l.down
	l.down, l.downUntil = down, until
	return was
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
		if err != nil {
			return nil, err
		}
		if l.pipe.isAvailable() {
			return l.pipe.gate.conn(conn), nil
		}
		conn.Close() //nolint:errcheck // it was not used
	}
}

// connections holds the open connections of a server.
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

// gate holds the connections of an instance that is paused.
type gate struct {
	mu   sync.Mutex    // guards open
	open chan struct{} // closed when the instance goes on; nil while it runs
}

func (g *gate) set(paused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case paused && g.open == nil:
		g.open = make(chan struct{})
	case !paused && g.open != nil:
		close(g.open)
		g.open = nil
	}
}

// conn returns a server's end of a connection as it is behind the gate.
func (g *gate) conn(conn net.Conn) net.Conn {
	return &gatedConn{Conn: conn, gate: g, closed: make(chan struct{})}
}

// gatedConn is a server's end of a connection. What arrives while the server is paused is
// read, as by a kernel, and handed on later.
type gatedConn struct {
	net.Conn
	gate    *gate
	closing sync.Once
	closed  chan struct{}
}

// wait waits until the server runs or the connection is closed.
func (c *gatedConn) wait() {
	c.gate.mu.Lock()
	open := c.gate.open
	c.gate.mu.Unlock()
	if open == nil {
		return
	}
	select {
	case <-open:
	case <-c.closed:
	}
}

func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wait()
	return n, err
}

func (c *gatedConn) Write(p []byte) (int, error) {
	c.wait()
	return c.Conn.Write(p)
}

func (c *gatedConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
