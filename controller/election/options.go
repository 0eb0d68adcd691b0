package election

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// Lead is called for each term. Its context ends when the term closes, with the term's error as
// cause, and when the context of [Elector.Run] does. It must then return.
type Lead func(ctx context.Context, t *Term) error

// Options name a Lease, and set the times for which it is held. Namespace and Name are required.
type Options struct {
	// Namespace and Name are the namespace and the name of the Lease.
	Namespace, Name string
	// Identity begins the holder's identity; "" is the host's name. Each term adds a random part.
	Identity string
	// Duration is the time for which others wait for a holder that does not renew, in whole
	// seconds; 0 is 15 s, the minimum 1 s.
	Duration time.Duration
	// Renew is the time between renewals; 0 is a fifth of Duration, the minimum 100 ms, the maximum
	// two fifths.
	Renew time.Duration
	// Grace is the time in which lead must return once its context has ended; 0 is 20 s.
	Grace time.Duration
	// OnNewLeader is called with each new holder that the Lease names, "" if it has none. Calls
	// come one after another; holders that were replaced meanwhile are left out. Run does not wait
	// for them, and a panic is logged. nil calls nothing.
	OnNewLeader func(identity string)
	// Logger receives lines about terms and failures; nil is slog.Default().
	Logger *slog.Logger
}

func (o Options) complete() (Options, error) {
	times := o.times().Complete(5)
	o.Duration, o.Renew, o.Grace = times.Duration, times.Renew, cmp.Or(o.Grace, lease.DefaultGrace)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Identity == "" {
		host, err := lease.HostName("election: Options")
		if err != nil {
			return o, err
		}
		o.Identity = host
	}
	return o, o.check()
}

func (o Options) check() error {
	if o.Namespace == "" {
		return fmt.Errorf("election: Options.Namespace is empty: give the namespace of the Lease, " +
			"such as that of the pod")
	}
	if problems := validation.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		return fmt.Errorf("election: Options.Namespace %.100q: %s", o.Namespace, strings.Join(problems, "; "))
	}
	if o.Name == "" {
		return fmt.Errorf("election: Options.Name is empty: give the name of the Lease")
	}
	if problems := validation.IsDNS1123Subdomain(o.Name); len(problems) > 0 {
		return fmt.Errorf("election: Options.Name %.100q: %s", o.Name, strings.Join(problems, "; "))
	}
	if err := o.times().Check("election: Options"); err != nil {
		return err
	}
	if o.Grace < 0 {
		return fmt.Errorf("election: Options.Grace is %v: give a positive time, or 0 for %v", o.Grace,
			lease.DefaultGrace)
	}
	return nil
}

func (o Options) times() lease.Times { return lease.Times{Duration: o.Duration, Renew: o.Renew} }
