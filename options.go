package tidings

import (
	"fmt"
	"time"
)

// leastResync is the least period of resyncs. A shorter one keeps the processor busy.
const leastResync = time.Millisecond

func badOption(field string, value any, remedy string) error {
	return fmt.Errorf("%s is %v: %s", field, value, remedy)
}

// check returns an error that names the first option that cannot be used.
func (o FactoryOptions) check() error {
	if err := checkNamespaces(o.Namespaces); err != nil {
		return fmt.Errorf("FactoryOptions.Namespaces: %w", err)
	}
	if o.StopGrace < 0 {
		return badOption("FactoryOptions.StopGrace", o.StopGrace, "give a duration, or 0 for 10 s")
	}
	return o.Transport.Check("FactoryOptions.Transport")
}

// check returns an error that names the first option that cannot be used.
func (o HandlerOptions) check() error {
	switch {
	case o.Resync < 0 || o.Resync > 0 && o.Resync < leastResync:
		return badOption("HandlerOptions.Resync", o.Resync,
			fmt.Sprintf("give %v or more, or 0 for none", leastResync))
	case o.Limit < 0:
		return badOption("HandlerOptions.Limit", o.Limit,
			"give a number of notifications, or 0 for the default")
	case o.Policy > PolicyUnbounded:
		return badOption("HandlerOptions.Policy", uint8(o.Policy),
			"use one of PolicyConflateUpdates, PolicyConflateState, PolicyBlock and PolicyUnbounded")
	}
	return nil
}
