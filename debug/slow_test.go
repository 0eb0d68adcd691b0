package debug

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
)

// TestSlowClients open a stream and read nothing more: its handler ends after a while, and with
// Close.
func TestSlowClients(t *testing.T) {
	for name, closes := range map[string]bool{"in time": false, "with Close": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Options{}, func(w *world) {
				client, server := net.Pipe()
				listener := make(pipes, 1)
				listener <- server
				s := &http.Server{Handler: w.pages}
				go s.Serve(listener) //nolint:errcheck // Serve ends with the test
				_, err := io.WriteString(client, "GET /stream?informer=configmaps.v1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
				w.fatal(err)
				synctest.Wait()
				if n := len(w.shown[0].(*tidings.Factory).Health()[0].Handlers); n != 3 {
					t.Fatalf("%d handlers, want 3", n)
				}
				for range 3 {
					w.set("c2", "first")
					w.pass(time.Second)
				}
				if closes {
					w.pages.Close()
				} else {
					w.pass(2 * time.Minute)
				}
				w.set("c2", "first") // the log drops the removed handler
				w.pass(time.Second)
				if n := len(w.shown[0].(*tidings.Factory).Health()[0].Handlers); n != 2 {
					t.Errorf("%d handlers are left, want 2", n)
				}
				w.fatal(client.Close())
				w.fatal(s.Shutdown(context.Background()))
			})
		})
	}
}

// pipes is a listener of connections.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }
