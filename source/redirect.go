package source

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// ErrRedirect is an answer that redirects a request to another host, or from https to http. It is
// not followed: the credentials would go there, as every request of a client carries them.
var ErrRedirect = errors.New("a redirect was not followed")

// maxRedirects is the number of redirects of one request that are followed, that of net/http.
const maxRedirects = 10

// sameHostOnly returns a copy of a client that follows no redirect to another host, and has
// no timeout.
func sameHostOnly(c *http.Client) *http.Client {
	home := *c
	home.Timeout = 0
	home.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if err := checkRedirect(via[len(via)-1].URL, req.URL); err != nil {
			return err
		}
		if c.CheckRedirect != nil {
			return c.CheckRedirect(req, via)
		}
		if len(via) >= maxRedirects {
			return fmt.Errorf("the server has redirected %d times", len(via))
		}
		return nil
	}
	return &home
}

// checkRedirect returns an error for a redirect that is not followed. From http to https the
// port may change.
func checkRedirect(from, to *url.URL) error {
	encrypted := from.Scheme == "http" && to.Scheme == "https"
	samePort := from.Scheme == to.Scheme && portOf(from) == portOf(to)
	if strings.EqualFold(from.Hostname(), to.Hostname()) && (encrypted || samePort) {
		return nil
	}
	return fmt.Errorf("%w: %s leads to %s, and the credentials would go there (if that is "+
		"the API server, make it the server of the kubeconfig or rest.Config)",
		ErrRedirect, quotedHost(from), quotedHost(to))
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// quotedHost returns the scheme and the host of a URL, which the server may have chosen.
func quotedHost(u *url.URL) string { return strconv.Quote(cutText(u.Scheme+"://"+u.Host, 256)) }
