package dynamicinformer

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/source"
)

// Client is a dynamic client that brings Tidings' own source along. The informers of this
// package that get it list and watch with that, which decodes each object once, shares what
// it has in common with others as it reads, and leaves out what the options say; everything
// else, as creating and updating, is the dynamic client's. A *dynamic.DynamicClient alone
// does not show what it sends its requests with, so that informers have to take the objects
// as it has decoded them. It may be used from any goroutine.
type Client struct {
	dynamic.Interface
	reads *source.Client
}

// NewClient makes a client, in the place of dynamic.NewForConfig:
//
//	client, err := dynamicinformer.NewClient(config, nil)
//
// httpClient sends the requests, whatever config says of transports, as in
// dynamic.NewForConfigAndClient; nil makes one of config. All requests have one rate limit.
// The timeout of the HTTP client, which is that of config, holds for lists; a watch lasts as
// long as its own.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	if config == nil {
		return nil, errors.New("dynamicinformer.NewClient: the rest.Config is nil: load one with clientcmd or rest.InClusterConfig")
	}
	config = dynamic.ConfigFor(config)
	config.GroupVersion, config.APIPath = nil, "/"
	if httpClient == nil {
		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("dynamicinformer.NewClient: the rest.Config cannot be used: %w", err)
		}
	}
	requests, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer.NewClient: the rest.Config cannot be used: %w", err)
	}
	reads, err := source.NewClientFromREST(requests)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer.NewClient: %w", err)
	}
	return &Client{dynamic.New(requests), reads}, nil
}

// ReadWith returns client with a source.Client with which informers list and watch in its
// place: for a client that a program has from elsewhere, or has wrapped. Both are to be of
// one server.
func ReadWith(client dynamic.Interface, reads *source.Client) (*Client, error) {
	if isNil(client) {
		return nil, fmt.Errorf("dynamicinformer.ReadWith: %w", errNilClient)
	}
	if reads == nil {
		return nil, errors.New("dynamicinformer.ReadWith: the source.Client is nil: make one with source.NewClient")
	}
	return &Client{client, reads}, nil
}

// IsWatchListSemanticsUnSupported says what the dynamic client says of itself to those who
// list and watch with it.
func (c *Client) IsWatchListSemanticsUnSupported() bool {
	return c != nil && watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

// readsOf returns what a client brings along, nil if that is nothing.
func readsOf(client dynamic.Interface) *source.Client {
	if own, ok := client.(*Client); ok && own != nil {
		return own.reads
	}
	return nil
}

// errNilClient is what an informer without a client fails with when it runs.
var errNilClient = errors.New("dynamicinformer: the client is nil: make one with NewClient or dynamic.NewForConfig")

// isNil also knows a client's typed nil.
func isNil(client dynamic.Interface) bool {
	switch client := client.(type) {
	case nil:
		return true
	case *dynamic.DynamicClient:
		return client == nil
	case *Client:
		return client == nil || isNil(client.Interface)
	}
	return false
}
