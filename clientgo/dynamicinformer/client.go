package dynamicinformer

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/source"
)

// Client is a dynamic client whose informers read with Tidings' own source: it decodes each
// object once, shares equal parts while it decodes, and leaves out the fields of the options.
// All other requests, such as create and update, are the dynamic client's. Informers of any
// other client receive objects that the client has decoded. It may be used from any
// goroutine.
type Client struct {
	dynamic.Interface
	own *source.Client
}

// NewClient makes a client, in place of dynamic.NewForConfig:
//
//	client, err := dynamicinformer.NewClient(config, nil)
//
// httpClient sends the requests, whatever the transport settings of config, as in
// dynamic.NewForConfigAndClient; nil makes one from config. All requests share one rate limit.
// The timeout of the HTTP client, which is that of config, applies to lists, not to watches.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	client, own, err := factory.Connect("dynamicinformer.NewClient", config, httpClient,
		dynamic.ConfigFor, dynamic.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	return &Client{client, own}, nil
}

// ReadWith returns client with a source.Client with which informers list and watch in its
// place: for a client that a program did not make, or has wrapped. Both must reach the same
// server.
func ReadWith(client dynamic.Interface, reads *source.Client) (*Client, error) {
	if isNil(client) {
		return nil, fmt.Errorf("dynamicinformer.ReadWith: %w", errNilClient)
	}
	if reads == nil {
		return nil, errors.New("dynamicinformer.ReadWith: the source.Client is nil: make one with source.NewClient")
	}
	return &Client{client, reads}, nil
}

// IsWatchListSemanticsUnSupported reports whether the dynamic client declares that it cannot
// stream lists.
func (c *Client) IsWatchListSemanticsUnSupported() bool {
	return c != nil && watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

// errNilClient is the error of every list and watch without a client.
var errNilClient = errors.New("dynamicinformer: the client is nil: make one with NewClient or dynamic.NewForConfig")

func isNil(client dynamic.Interface) bool {
	if c, ok := client.(*Client); ok && c != nil {
		return isNil(c.Interface)
	}
	return factory.IsNil(client)
}
