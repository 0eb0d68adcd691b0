package debug

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/footprint"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/shard"
)

// Informer is an informer that is in no factory of Options: a *tidings.Informer that
// tidings.NewInformer has made.
type Informer interface{ Health() health.Informer }

// Controller is a controller that is in no manager of Options: a *controller.Controller.
type Controller interface{ Health() controller.Health }

// Group is a group of shards: a *shard.Group.
type Group interface {
	Health() shard.Health
	Map() []shard.Entry
}

// Options name the informers, controllers and groups that the pages show.
type Options struct {
	// Factories are the factories whose informers are shown.
	Factories []*tidings.Factory
	// Informers are informers without a factory.
	Informers []Informer
	// DropIns are factories of packages clientgo/informers, dynamicinformer and
	// metadatainformer, and informers of clientgo/cache that have no factory. Of a wrapper of an
	// informer, pass GetStore().
	DropIns []any
	// Managers are the managers whose controllers and elections are shown.
	Managers []*controller.Manager
	// Controllers are controllers without a manager.
	Controllers []Controller
	// Groups are the groups of shards that this process is a member of.
	Groups []Group
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
	mux     *http.ServeMux
	sampler *sampler
	// estimates has the memory of each informer.
	estimates footprint.Estimates
	stopped   context.Context // ends with Close
	stop      context.CancelFunc
}

// New returns a handler. To serve it below a path, mount it with a slash at the end:
//
//	mux.Handle("/debug/tidings/", http.StripPrefix("/debug/tidings", handler))
func New(o Options) (*Handler, error) {
	switch {
	case slices.Contains(o.Factories, nil):
		return nil, errors.New("debug: New: Options.Factories has a nil factory")
	case slices.Contains(o.Managers, nil):
		return nil, errors.New("debug: New: Options.Managers has a nil manager")
	case slices.Contains(o.Informers, nil):
		return nil, errors.New("debug: New: Options.Informers has a nil informer")
	case slices.Contains(o.Controllers, nil):
		return nil, errors.New("debug: New: Options.Controllers has a nil controller")
	case slices.Contains(o.Groups, nil):
		return nil, errors.New("debug: New: Options.Groups has a nil group")
	}
	for _, of := range o.DropIns {
		if _, ok := inspect.ViewsOf(of); !ok {
			return nil, fmt.Errorf("debug: New: Options.DropIns has a %T: pass a factory of "+
				"clientgo/informers, dynamicinformer or metadatainformer, or an informer of "+
				"clientgo/cache; of a wrapper of an informer, pass GetStore()", of)
		}
	}
	if len(o.Factories)+len(o.Informers)+len(o.DropIns)+len(o.Managers)+len(o.Controllers)+
		len(o.Groups) == 0 {
		return nil, errors.New("debug: New: Options name nothing to show: " +
			"set Factories, DropIns or Managers")
	}
	h := &Handler{o: o}
	h.stopped, h.stop = context.WithCancel(context.Background())
	h.sampler = newSampler(h.stopped, h.sample)
	h.mux = h.routes()
	return h, nil
}

// Close ends the views of changes that are open, and the sampler.
func (h *Handler) Close() { h.stop() }

// shutdownGrace is the time for which Serve waits for requests at its end.
const shutdownGrace = time.Second

// Serve answers requests at an address until ctx ends. An address without a host, as in ":8085",
// is on localhost. For requests from other hosts, name an interface, as in "0.0.0.0:8085".
func Serve(ctx context.Context, address string, o Options) error {
	h, err := New(o)
	if err != nil {
		return err
	}
	defer h.Close()
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
