package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/health"
)

type informer struct{}

func (informer) Health() health.Informer { return health.Informer{Name: "pods.v1"} }

// TestPagesHaveMetrics: the server of the pages answers /metrics too, and nothing but pages else.
func TestPagesHaveMetrics(t *testing.T) {
	t.Parallel()
	address, stop, err := servePages(anyPort, debug.Options{}, informer{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for path, want := range map[string]string{
		"": "pods.v1", "metrics": `tidings_informer_objects{informer="pods.v1"`, "nothing": "404",
	} {
		answer, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("/%s: %s (%v), want %q", path, body, err, want)
		}
		answer.Body.Close() //nolint:errcheck // it was read
	}
}
