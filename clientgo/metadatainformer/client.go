package metadatainformer

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/source"
)

// Client is a metadata client whose informers read with Tidings' own source: it decodes each
// object once, shares equal parts while it decodes, and leaves out the fields of the options.
// All other requests, such as delete and patch, are the metadata client's. Informers of any
// other client receive objects that the client has decoded. It may be used from any
// goroutine.
type Client struct {
	metadata.Interface
	own *source.Client
}

// NewClient makes a client, in place of metadata.NewForConfig:
//
//	client, err := metadatainformer.NewClient(config, nil)
//
// httpClient sends the requests, whatever the transport settings of config, as in
// metadata.NewForConfigAndClient; nil makes one from config. All requests share one rate limit.
// The timeout of the HTTP client, which is that of config, applies to lists, not to watches.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	client, own, err := factory.Connect("metadatainformer.NewClient", config, httpClient,
		metadata.ConfigFor, metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	return &Client{client, own}, nil
}

// ReadWith returns client with a source.Client with which informers list and watch in its
// place: for a client that a program did not make, or has wrapped. Both must reach the same
// server.
func ReadWith(client metadata.Interface, reads *source.Client) (*Client, error) {
	if isNil(client) {
		return nil, fmt.Errorf("metadatainformer.ReadWith: %w", errNilClient)
	}
	if reads == nil {
		return nil, errors.New("metadatainformer.ReadWith: the source.Client is nil: make one with source.NewClient")
	}
	return &Client{client, reads}, nil
}

// IsWatchListSemanticsUnSupported reports whether the metadata client declares that it cannot
// stream lists.
func (c *Client) IsWatchListSemanticsUnSupported() bool {
	return c != nil && watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

// errNilClient is the error of every list and watch without a client.
var errNilClient = errors.New("metadatainformer: the client is nil: make one with NewClient or metadata.NewForConfig")

func isNil(client metadata.Interface) bool {
	if c, ok := client.(*Client); ok && c != nil {
		return isNil(c.Interface)
	}
	return factory.IsNil(client)
}
