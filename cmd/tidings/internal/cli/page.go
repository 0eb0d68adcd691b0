package cli

import (
	"fmt"
	"net"
	"net/http"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/debug"
)

// servePages serves the pages of package debug, of the demo's informers and the cluster's controllers.
func (d *demonstration) servePages() error {
	url, stop, err := servePages(d.o.page, debug.Options{
		Factories: []*tidings.Factory{d.factory}, Managers: []*controller.Manager{d.cluster}, Bodies: true,
		Recorder: d.recorder,
	})
	if err != nil {
		return err
	}
	d.closePages = stop
	return say(d.screen, "its informers and controllers on a page: %s", url)
}

// servePages serves the pages of package debug at the address of the flag --page, until stop is
// called.
func servePages(address string, o debug.Options) (url string, stop func(), err error) {
	pages, err := debug.New(o)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		pages.Close()
		return "", nil, problem.Reworded(fmt.Sprintf("the page cannot be served at %s: %v: choose another "+
			"address with --page, such as %s", address, err, anyPort), err)
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: stopTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(listener) //nolint:errcheck // it ends with Close
	}()
	return fmt.Sprintf("http://%s/", listener.Addr()), func() {
		pages.Close()
		server.Close() //nolint:errcheck // the command is over
		<-served
	}, nil
}
