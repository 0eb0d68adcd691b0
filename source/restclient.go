package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// NewClientFromREST returns a client that sends its requests through an existing REST
// client of client-go, such as the RESTClient() of a group of a clientset: with its
// transport, credentials, user agent and rate limit, and in protobuf only if that
// client would use it. The timeout of its http.Client applies to lists.
func NewClientFromREST(c *rest.RESTClient) (*Client, error) {
	if c == nil {
		return nil, errors.New("source: the REST client is nil: " +
			"pass one that was made from a rest.Config")
	}
	accept, err := acceptOf(c)
	if err != nil {
		return nil, fmt.Errorf("source: the REST client cannot be used: %w", err)
	}
	httpClient := http.DefaultClient
	if c.Client != nil {
		httpClient = c.Client
	}
	return &Client{
		rest: c, http: sameHostOnly(httpClient), timeout: httpClient.Timeout,
		jsonOnly: !strings.Contains(accept, protobufType),
	}, nil
}

// acceptOf returns the Accept header that a typed client on top of c sends. Only a
// request shows it: one is made with a copy of c that does not reach the server.
func acceptOf(c *rest.RESTClient) (string, error) {
	// By reflection, because vet refuses a plain copy of the atomic flag in the client, whose
	// value does not matter here.
	offline := new(rest.RESTClient)
	reflect.ValueOf(offline).Elem().Set(reflect.ValueOf(c).Elem())
	var accept string
	answer := func(req *http.Request) (*http.Response, error) {
		accept = req.Header.Get("Accept")
		body := io.NopCloser(strings.NewReader("{}"))
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: req,
		}, nil
	}
	offline.Client = &http.Client{Transport: roundTripFunc(answer)}
	request := offline.Get().UseProtobufAsDefault()
	request = request.Throttle(flowcontrol.NewFakeAlwaysRateLimiter()).AbsPath("/")
	result := request.Do(context.Background())
	if accept == "" {
		return "", fmt.Errorf("it could not prepare a request: %w", result.Error())
	}
	return accept, nil
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
