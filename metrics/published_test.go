package metrics

import (
	"testing"

	"github.com/tidings-go/tidings/health"
)

// publishing is an informer with a name among client-go's metrics.
type publishing struct{ of health.Informer }

func (p *publishing) Health() health.Informer { return p.of }

// TestOneNameTwice adds two informers with the same name in client-go's metrics, as a factory and
// one of its informers have: a registry refuses all metrics if two have the same labels.
func TestOneNameTwice(t *testing.T) {
	of := health.Informer{Name: "pods.v1", Published: health.Published{Name: "mine", Version: "v1", Resource: "pods"}}
	of.Version = "7"
	c := collector(t, Options{ClientGo: true}, &publishing{of}, &publishing{of})
	for range 2 {
		expect(t, c, 7, "informer_store_resource_version", "name=mine")
	}
}
