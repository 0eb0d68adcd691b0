package factory

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/source"
)

// Connect makes a client of client-go and a source.Client that reads in its place, for an
// exported function of that name. configFor completes the configuration for newClient. Both
// clients share one rate limit. A nil httpClient means one made from the configuration.
func Connect[C any](function string, config *rest.Config, httpClient *http.Client,
	configFor func(*rest.Config) *rest.Config, newClient func(*rest.Config, *http.Client) (C, error),
) (client C, own *source.Client, err error) {
	if config == nil {
		return client, nil, fmt.Errorf("%s: the rest.Config is nil: load one with clientcmd or rest.InClusterConfig", function)
	}
	config = configFor(config)
	config.GroupVersion, config.APIPath = nil, "/"
	requests, err := restClient(config, &httpClient)
	if err == nil {
		config.RateLimiter = requests.GetRateLimiter()
		client, err = newClient(config, httpClient)
	}
	if err != nil {
		return client, nil, fmt.Errorf("%s: the rest.Config cannot be used: %w", function, err)
	}
	if own, err = source.NewClientFromREST(requests); err != nil {
		return client, nil, fmt.Errorf("%s: %w", function, err)
	}
	return client, own, nil
}

func restClient(config *rest.Config, httpClient **http.Client) (*rest.RESTClient, error) {
	if *httpClient == nil {
		var err error
		if *httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, err
		}
	}
	return rest.UnversionedRESTClientForConfigAndClient(config, *httpClient)
}
