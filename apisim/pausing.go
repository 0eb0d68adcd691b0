package apisim

import (
	"net"
	"sync"
)

// gate holds the connections of an instance that stands still.
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

// wait waits until the instance runs or the connection is closed.
func (g *gate) wait(closed <-chan struct{}) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open == nil {
		return
	}
	select {
	case <-open:
	case <-closed:
	}
}

// gatedConn is the instance's end of a connection. What arrives while the instance stands still is
// read, as by a kernel, and handed on later.
type gatedConn struct {
	net.Conn
	gate    *gate
	closing sync.Once
	closed  chan struct{}
}

// newGatedConn returns conn itself for a nil gate.
func newGatedConn(conn net.Conn, g *gate) net.Conn {
	if g == nil {
		return conn
	}
	return &gatedConn{Conn: conn, gate: g, closed: make(chan struct{})}
}

func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.wait(c.closed)
	return n, err
}

func (c *gatedConn) Write(p []byte) (int, error) {
	c.gate.wait(c.closed)
	return c.Conn.Write(p)
}

func (c *gatedConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
