package cli

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// anyPort is an address of this machine that nobody else reaches.
const anyPort = "127.0.0.1:0"

// listen makes a server reachable over TCP, and returns a URL at which this machine
// reaches it.
func listen(server *apisim.Server, address string) (string, error) {
	at, err := server.Listen(address)
	if err != nil {
		err = problem.Without(fmt.Sprintf("apisim: cannot listen on %s: ", address), err)
		return "", fmt.Errorf("the API server cannot listen on %s: %w: choose another address with --listen, such as 127.0.0.1:8080", address, err)
	}
	return fromHere(at)
}

// fromHere returns a URL with the name of this machine in the place of an address that
// stands for all that it has.
func fromHere(at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return u.String(), nil
}
