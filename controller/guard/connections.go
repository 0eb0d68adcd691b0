package guard

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// connections are the open connections of a guard's clients, which other clients do not share.
type connections struct {
	mu   sync.Mutex // guards open
	open map[*connection]struct{}
}

// connection is a connection that is removed from connections when it is closed.
type connection struct {
	net.Conn
	of *connections
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// of makes the clients of a config open connections of their own. It has no effect on a Transport
// that is not net/http's.
func (c *connections) of(config *rest.Config) {
	if given, ok := config.Transport.(*http.Transport); ok {
		own := given.Clone()
		own.DialContext = c.dial(own.DialContext)
		config.Transport = own
	} else if config.Transport == nil {
		config.Dial = c.dial(config.Dial)
	}
}

func (c *connections) dial(dial dialFunc) dialFunc {
	if dial == nil { // as client-go does
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		opened, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := &connection{opened, c}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open == nil {
			c.open = make(map[*connection]struct{})
		}
		c.open[conn] = struct{}{}
		return conn, nil
	}
}

// Close closes the connection.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// abort closes the connections and drops the bytes that the system has not sent yet. After a plain
// close the system would go on sending for minutes.
func (c *connections) abort() {
	c.mu.Lock()
	open := c.open
	c.open = nil
	c.mu.Unlock()
	for conn := range open {
		if tcp, ok := conn.Conn.(*net.TCPConn); ok {
			tcp.SetLinger(0) //nolint:errcheck // the connection is closed in any case
		}
		conn.Conn.Close() //nolint:errcheck // it is not used any more
	}
}
