package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/metrics"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A program serves the metrics of its factory. Here, one scrape is printed in part.
func Example() {
	server, err := apisim.New(apisim.Options{})
	check(err)
	defer server.Close()
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	check(err)
	defer factory.Shutdown(context.Background())
	_, err = tidings.For[*corev1.Namespace](factory, tidings.Selection{})
	check(err)
	check(factory.Start(context.Background()))
	check(factory.WaitForSync(context.Background()))

	collector := metrics.New(metrics.Options{})
	check(collector.Add(factory))
	registry := prometheus.NewRegistry()
	check(registry.Register(collector))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "tidings_informer_synced") {
			fmt.Print(line)
		}
	}
	// Output:
	// tidings_informer_synced{informer="namespaces.v1"} 1
}
