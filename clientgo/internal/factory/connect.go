package factory

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/source"
)

// Connect makes the source.Client that reads in place of a client of client-go, for an exported
// function of that name. configFor completes a configuration for that client. The result has
// the configuration and the HTTP client to make that client with, so that both clients share one
// rate limit. A nil httpClient means one made from the configuration.
func Connect(function string, configFor func(*rest.Config) *rest.Config, config *rest.Config,
	httpClient *http.Client) (*rest.Config, *http.Client, *source.Client, error) {
	if config == nil {
		return nil, nil, nil, fmt.Errorf("%s: the rest.Config is nil: load one with clientcmd or rest.InClusterConfig", function)
	}
	config = configFor(config)
	config.GroupVersion, config.APIPath = nil, "/"
	requests, err := restClient(config, &httpClient)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: the rest.Config cannot be used: %w", function, err)
	}
	own, err := source.NewClientFromREST(requests)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", function, err)
	}
	config.RateLimiter = requests.GetRateLimiter()
	return config, httpClient, own, nil
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
