package e2e

import (
	"testing"
	"time"

	"github.com/tidings-go/tidings/apisim/protocoltest"
)

// TestProtocol runs the tests of apisim's protocol on a real API server, to show that apisim
// answers as it does.
func TestProtocol(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	protocoltest.Run(t, protocoltest.Server{
		Config: server.Config(), EventTimeout: time.Minute,
		Forget: func() error { return forget(t.Context(), server) },
	})
}
