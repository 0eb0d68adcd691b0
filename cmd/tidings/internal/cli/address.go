package cli

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// anyPort is an address of this machine that nobody else reaches.
const anyPort = "127.0.0.1:0"

// address is where a server listens.
type address struct {
	// url is the address as it is, here one at which this machine reaches it.
	url, here string
	// open says that other machines reach it, too.
	open bool
}

// listen makes a server reachable over TCP.
func listen(server *apisim.Server, at string) (address, error) {
	listening, err := server.Listen(at)
	if err != nil {
		err = problem.Without(fmt.Sprintf("apisim: cannot listen on %s: ", at), err)
		return address{}, fmt.Errorf("the API server cannot listen on %s: %w: choose another address with --listen, such as 127.0.0.1:8080", at, err)
	}
	u, err := url.Parse(listening)
	if err != nil {
		return address{}, err
	}
	a := address{url: listening, here: listening, open: true}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		a.open = !ip.IsLoopback()
		if ip.IsUnspecified() {
			u.Host = net.JoinHostPort("localhost", u.Port())
			a.here = u.String()
		}
	}
	return a, nil
}

// String names the address, and the one from here where that is another.
func (a address) String() string {
	if a.here == a.url {
		return a.url
	}
	return fmt.Sprintf("%s (%s from here)", a.url, a.here)
}

// warning says what it means that others reach the server, "" if they do not.
func (a address) warning() string {
	if !a.open {
		return ""
	}
	return fmt.Sprintf("tidings: everybody who reaches %s may read and write everything there, without credentials: --listen %s keeps it to this machine", a.url, anyPort)
}

// withoutUser returns the address of a server without the user and the password in it.
func withoutUser(host string) string {
	scheme, rest, found := strings.Cut(host, "://")
	if !found {
		scheme, rest = "", host
	} else {
		scheme += "://"
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	return scheme + rest
}
