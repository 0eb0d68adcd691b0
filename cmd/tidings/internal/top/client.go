package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/internal/see/format"
)

const (
	// requestTimeout bounds the time of an answer, and maxAnswer its size in bytes.
	requestTimeout = 5 * time.Second
	maxAnswer      = 64 << 20
)

// Client reads the pages of package debug of one process. Use [NewClient].
type Client struct {
	name    string
	address func(ctx context.Context) (*url.URL, error)
	http    http.Client
}

// NewClient returns a client of a process, with its name in messages. Before each request it calls
// address, which returns the address of the first page.
func NewClient(name string, address func(ctx context.Context) (*url.URL, error)) *Client {
	return &Client{name, address, http.Client{Timeout: requestTimeout}}
}

// JSON returns the JSON form of the first page, with control characters escaped.
func (c *Client) JSON(ctx context.Context) (string, error) {
	body, err := c.get(ctx, "")
	if err == nil && !json.Valid(body) {
		err = fmt.Errorf("%s has sent a text that is not JSON", c.name)
	}
	return view.Escaped(string(body)), err
}

// Tables returns the tables of all screens as text.
func (c *Client) Tables(ctx context.Context) (string, error) {
	var f figures
	err := c.read(ctx, "", &f.Overview)
	return f.tables(), err
}

// get returns the JSON form of a page; path is relative to the first page. Errors name the process
// and the remedy.
func (c *Client) get(ctx context.Context, path string) ([]byte, error) {
	base, err := c.address(ctx)
	if err != nil {
		return nil, err
	}
	page, err := base.Parse(path)
	if err != nil {
		return nil, fmt.Errorf("%s names a page that is no address: %w", c.name, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, problem.Reworded(fmt.Sprintf("%s does not answer: %s: is the program running, and "+
			"does it serve the pages of package debug there?", c.name, problem.Reason(err)), err)
	}
	defer answer.Body.Close() //nolint:errcheck // the body was read
	switch version := answer.Header.Get(debug.FormHeader); version {
	case debug.FormVersion:
	case "":
		return nil, fmt.Errorf("%s is not a page of Tidings' package debug: it answers with %.80s: name "+
			"the address of the first page, with its path, as in http://localhost:8085/debug/tidings/",
			c.name, answer.Status)
	default:
		return nil, fmt.Errorf("%s has its figures in version %.40q, and this command reads version %s: "+
			"use the command of the version of Tidings that the program is built with", c.name, version,
			debug.FormVersion)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("%s answers with more than %s", c.name, format.Bytes(maxAnswer))
	case err != nil:
		return nil, problem.Reworded(fmt.Sprintf("%s does not answer in full: %s", c.name,
			problem.Reason(err)), err)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s", c.name, problem.OneLine(string(body)))
	}
	return body, nil
}

func (c *Client) read(ctx context.Context, path string, figures any) error {
	body, err := c.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, figures); err != nil {
		return fmt.Errorf("%s has sent figures that cannot be read: %w", c.name, err)
	}
	return nil
}

// page returns the figures of a page with details: of an informer, a controller, a group or a key.
func (c *Client) page(ctx context.Context, path string) (any, error) {
	var figures any
	switch kind, _, _ := strings.Cut(path, "?"); kind {
	case "informer":
		figures, path = new(debug.InformerFigures), path+"&history=1"
	case "controller":
		figures, path = new(debug.ControllerFigures), path+"&history=1"
	case "group":
		figures = new(debug.GroupFigures)
	case "key":
		figures = new(debug.KeyFigures)
	default:
		return nil, errors.New("there are no details of it")
	}
	return figures, c.read(ctx, path, figures)
}
