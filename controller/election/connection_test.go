package election

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// deafConn is a connection that can die without a sign, as behind a load balancer that has
// forgotten it: bytes that are written vanish, and none arrive.
type deafConn struct {
	net.Conn
	deaf   *atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() && err == nil {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *deafConn) Write(b []byte) (int, error) {
	if c.deaf.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// TestC10_ADeadConnectionDoesNotEndATerm uses HTTP/2, where the watch and all renewals share one
// connection.
func TestC10_ADeadConnectionDoesNotEndATerm(t *testing.T) {
	bubble(t, func(t *world) {
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		listener := pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: t.server, Protocols: &protocols}
		served := make(chan struct{})
		go func() {
			defer close(served)
			server.Serve(listener) //nolint:errcheck // the error is that the listener is closed
		}()
		var mu sync.Mutex
		var dialed []*deafConn // guarded by mu
		transport := &http.Transport{
			Protocols: &protocols,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				listener.conns <- theirs
				c := &deafConn{Conn: ours, deaf: new(atomic.Bool), closed: make(chan struct{})}
				mu.Lock()
				defer mu.Unlock()
				dialed = append(dialed, c)
				return c, nil
			},
		}
		e, err := New(&rest.Config{Host: "http://server.invalid", Transport: transport}, options("a"))
		if err != nil {
			t.Fatal(err)
		}
		a := &candidate{Elector: e, done: make(chan struct{})}
		t.run(a, func(ctx context.Context, term *Term) error {
			a.note(term)
			<-ctx.Done()
			return nil
		})
		term, _ := t.term(a, 0)
		time.Sleep(10 * time.Second)
		mu.Lock()
		before := len(dialed)
		for _, c := range dialed {
			c.deaf.Store(true)
		}
		mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		if term.Err() != nil || len(dialed) == before {
			t.Errorf("%d connections, %d of them dead, and the term: %v", len(dialed), before, term.Err())
		}
		mu.Unlock()
		a.stop()
		<-a.done
		transport.CloseIdleConnections()
		server.Close() //nolint:errcheck // the error does not matter
		<-served
	})
}
