package metadatainformer

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/source"
)

// Client is a metadata client that brings Tidings' own source along. The informers of this
// package that get it list and watch with that, which decodes each object once, shares what
// it has in common with others as it reads, and leaves out what the options say; everything
// else, as deleting and patching, is the metadata client's. A *metadata.Client alone
// does not show what it sends its requests with, so that informers have to take the objects
// as it has decoded them. It may be used from any goroutine.
type Client struct {
	metadata.Interface
	reads *source.Client
}

// NewClient makes a client, in the place of metadata.NewForConfig:
//
//	client, err := metadatainformer.NewClient(config, nil)
//
// httpClient sends the requests, whatever config says of transports, as in
// metadata.NewForConfigAndClient; nil makes one of config. All requests have one rate limit.
// The timeout of the HTTP client, which is that of config, holds for lists; a watch lasts as
// long as its own.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	if config == nil {
		return nil, errors.New("metadatainformer.NewClient: the rest.Config is nil: load one with clientcmd or rest.InClusterConfig")
	}
	config = metadata.ConfigFor(config)
	config.GroupVersion, config.APIPath = &schema.GroupVersion{}, "/"
	if httpClient == nil {
		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("metadatainformer.NewClient: the rest.Config cannot be used: %w", err)
		}
	}
	requests, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("metadatainformer.NewClient: the rest.Config cannot be used: %w", err)
	}
	reads, err := source.NewClientFromREST(requests)
	if err != nil {
		return nil, fmt.Errorf("metadatainformer.NewClient: %w", err)
	}
	// A metadata client cannot be made around a REST client. One that is made anew gets the
	// rate limit of the first.
	config.RateLimiter = requests.GetRateLimiter()
	client, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("metadatainformer.NewClient: the rest.Config cannot be used: %w", err)
	}
	return &Client{client, reads}, nil
}

// ReadWith returns client with a source.Client with which informers list and watch in its
// place: for a client that a program has from elsewhere, or has wrapped. Both are to be of
// one server.
func ReadWith(client metadata.Interface, reads *source.Client) (*Client, error) {
	if isNil(client) {
		return nil, fmt.Errorf("metadatainformer.ReadWith: %w", errNilClient)
	}
	if reads == nil {
		return nil, errors.New("metadatainformer.ReadWith: the source.Client is nil: make one with source.NewClient")
	}
	return &Client{client, reads}, nil
}

// IsWatchListSemanticsUnSupported says what the metadata client says of itself to those who
// list and watch with it.
func (c *Client) IsWatchListSemanticsUnSupported() bool {
	return c != nil && watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

// readsOf returns what a client brings along, nil if that is nothing.
func readsOf(client metadata.Interface) *source.Client {
	if own, ok := client.(*Client); ok && own != nil {
		return own.reads
	}
	return nil
}

// errNilClient is what an informer without a client fails with when it runs.
var errNilClient = errors.New("metadatainformer: the client is nil: make one with NewClient or metadata.NewForConfig")

// isNil also knows a client's typed nil.
func isNil(client metadata.Interface) bool {
	switch client := client.(type) {
	case nil:
		return true
	case *metadata.Client:
		return client == nil
	case *Client:
		return client == nil || isNil(client.Interface)
	}
	return false
}
