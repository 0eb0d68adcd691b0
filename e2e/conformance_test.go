package e2e

import (
	"testing"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/tidingstest"
)

// TestConformance puts informers of every kind to the contract, on a real API server: in
// client-go's default encodings, and in JSON alone.
func TestConformance(t *testing.T) {
	for name, contentType := range map[string]string{"default": "", "json": "application/json"} {
		t.Run(name, func(t *testing.T) {
			config := apiserver.Start(t).Config()
			config.ContentType = contentType
			tidingstest.Run(t, tidingstest.Server{Config: config})
		})
	}
}
