package e2e

import (
	"testing"
	"time"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/apisim/protocoltest"
)

// TestProtocol asks a real API server what apisim is asked too, so that apisim can be
// believed.
func TestProtocol(t *testing.T) {
	t.Parallel()
	server := apiserver.Start(t)
	protocoltest.Run(t, protocoltest.Server{
		Config: server.Config(), EventTimeout: time.Minute,
		Forget: func() error { return forget(t.Context(), server) },
	})
}
