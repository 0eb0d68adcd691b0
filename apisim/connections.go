package apisim

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// pipeListener accepts connections through memory. While the server is unavailable, it refuses
// them, and those of TCP listeners.
type pipeListener struct {
	accepted chan net.Conn
	closed   chan struct{} // closed by Close, which net/http calls once

	storage *pipeListener // of the server, for an instance: it is unavailable with the server

	mu        sync.Mutex // guards the rest
	downUntil time.Time
	paused    chan struct{} // closed at the end of the pause; nil without a pause
	open      map[*connection]struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{
		accepted: make(chan net.Conn), closed: make(chan struct{}),
		open: make(map[*connection]struct{}),
	}
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
	case l.accepted <- server:
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
	return !time.Now().Before(l.downUntil)
}

// forGood is a time that does not come.
var forGood = time.Unix(1<<40, 0)

// setDown refuses connections until a time, and reports whether they were refused for good before.
func (l *pipeListener) setDown(until time.Time) (was bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = l.downUntil.Equal(forGood)
	l.downUntil = until
	return was
}

// Accept returns the server's end of the next connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return l.connect(conn), nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections.
func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

// Addr returns a placeholder: connections through memory have no address.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "apisim.invalid", Net: "pipe"} }

// tcpListener closes the connections that come while the server is unavailable.
type tcpListener struct {
	net.Listener
	pipe *pipeListener
}

// Accept returns the next connection that comes while the server is available, and closes others.
func (l tcpListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.pipe.isAvailable() {
			return l.pipe.connect(conn), nil
		}
		conn.Close() //nolint:errcheck // the connection was not used
	}
}

// connection is the server's end of a connection. Bytes that arrive during a pause of the server
// are read, as by a kernel, and handed on later. What waits when the connection is cut is lost.
type connection struct {
	net.Conn
	listener *pipeListener
	closing  sync.Once
	closed   chan struct{}
}

func (l *pipeListener) connect(conn net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &connection{Conn: conn, listener: l, closed: make(chan struct{})}
	l.open[c] = struct{}{}
	return c
}

// connections returns the open connections.
func (l *pipeListener) connections() []*connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

func (l *pipeListener) setPaused(paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case paused && l.paused == nil:
		l.paused = make(chan struct{})
	case !paused && l.paused != nil:
		close(l.paused)
		l.paused = nil
	}
}

// wait waits until the pause ends. It returns an error if the connection is closed before.
func (c *connection) wait() error {
	c.listener.mu.Lock()
	paused := c.listener.paused
	c.listener.mu.Unlock()
	if paused == nil {
		return nil
	}
	select {
	case <-paused:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}

func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if closed := c.wait(); closed != nil {
		return 0, closed
	}
	return n, err
}

func (c *connection) Write(p []byte) (int, error) {
	if err := c.wait(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *connection) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		c.listener.mu.Lock()
		defer c.listener.mu.Unlock()
		delete(c.listener.open, c)
	})
	return c.Conn.Close()
}
