package debug

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/internal/see/footprint"
	"github.com/tidings-go/tidings/internal/see/gather"
)

// Options are the choices of a [Handler]. The zero value is ready.
type Options struct {
	// Bodies shows objects and the values of fields that have changed, except the contents of
	// Secrets. Then readers of the pages can read every cached object.
	Bodies bool
	// Recorder is the flight recorder of the informers. The first page has a button that saves a
	// recording: a file with the objects that have changed, except the contents of Secrets. It
	// does not depend on Bodies. With nil there is no button.
	Recorder *flight.Recorder
	// Hosts are host names that requests may use beside localhost and IP addresses.
	Hosts []string
}

// Handler answers requests for the pages. Use [New].
type Handler struct {
	o       Options
	sources gather.Sources
	mux     *http.ServeMux
	sampler *sampler
	// restarts has what the sampler counts of lists and watches.
	restarts restarts
	// identity has the fields of the process that do not change.
	identity Process
	// estimates has the memory of each informer.
	estimates footprint.Estimates
	stopped   context.Context // ends with Close
	stop      context.CancelFunc
}

// New returns a handler that shows what is added to it. To serve it below a path, mount it with a
// slash at the end:
//
//	mux.Handle("/debug/tidings/", http.StripPrefix("/debug/tidings", handler))
func New(o Options) *Handler {
	h := &Handler{o: o, identity: identity()}
	h.stopped, h.stop = context.WithCancel(context.Background())
	h.sampler = newSampler(h.stopped, h.sample)
	h.mux = h.routes()
	return h
}

// Add adds sources, which the pages show in this order: each is a *tidings.Factory, a factory of a
// drop-in package, an informer of either that has no factory, a *controller.Manager, a
// *controller.Controller or *election.Elector without one, or a *shard.Group. A wrapper of a
// drop-in informer is added by its GetStore. The guard of a manager is shown with its controllers;
// one that is added has no page. A source that was added before is not added again. With an error,
// no source is added. The first Add begins the history, which Close ends.
func (h *Handler) Add(sources ...any) error {
	if err := h.sources.Add(sources...); err != nil {
		return fmt.Errorf("debug: Add: %w", err)
	}
	h.sampler.start()
	return nil
}

// Close ends the views of changes that are open, and the history, and waits for the goroutine that
// Add has started. It may be called more than once.
func (h *Handler) Close() {
	h.stop()
	h.sampler.wait()
}

// shutdownGrace is the time for which Serve waits for requests at its end.
const shutdownGrace = time.Second

// Serve answers requests for pages of sources, which are those of [Handler.Add], at an address
// until ctx ends. An address without a host, as in ":8085", is on localhost. For requests from
// other hosts, name an interface, as in "0.0.0.0:8085".
func Serve(ctx context.Context, address string, o Options, sources ...any) error {
	h := New(o)
	defer h.Close()
	if err := h.sources.Add(sources...); err != nil {
		return fmt.Errorf("debug: Serve: %w", err)
	}
	h.sampler.start()
	if len(sources) == 0 {
		return errors.New("debug: Serve: there is nothing to show: pass a factory or a manager")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("debug: Serve: the address %q is not host:port: %w", address, err)
	}
	host = cmp.Or(host, "localhost")
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("debug: Serve: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("debug: Serve: %w", err)
	case <-ctx.Done():
	}
	h.Close() // before the wait for requests: views of changes do not end by themselves
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if server.Shutdown(ending) != nil {
		server.Close() //nolint:errcheck // requests that still run are cut
	}
	<-served
	return nil
}
