package tidings

import (
	"fmt"
	"time"

	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/source"
)

// leastResync is the least period of resyncs. A shorter one keeps the processor busy.
const leastResync = time.Millisecond

// badOption names an option that cannot be used, its value and the remedy.
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
	read := source.RESTOptions{Transport: transportOf(o, o.Sharing)}
	if err := read.Check("FactoryOptions"); err != nil {
		return err
	}
	return reflectorOptions[struct{}](o).Check("FactoryOptions")
}

// transportOf returns the options of a factory that are those of its sources.
func transportOf(o FactoryOptions, sharing source.Sharing) source.Transport {
	return source.Transport{
		MaxFrameBytes: o.MaxFrameBytes, MaxListBytes: o.MaxListBytes, ListBudget: o.ListBudget,
		Sharing: sharing,
	}
}

// reflectorOptions returns the options of a factory that are those of its reflectors.
func reflectorOptions[T any](o FactoryOptions) reflector.Options[T] {
	return reflector.Options[T]{
		PageSize: o.PageSize, NoStreamedLists: o.NoStreamedLists, ConsistentFirstList: o.ConsistentFirstList,
		WatchTimeout: o.WatchTimeout, MaxSilence: o.MaxSilence, Backoff: o.Backoff,
	}
}

// check returns an error that names the first option that cannot be used. The store checks
// the functions of the indexes.
func (o InformerOptions[T]) check() error {
	read := source.RESTOptions{Transport: source.Transport{Sharing: o.Sharing}}
	if err := read.Check("InformerOptions"); err != nil {
		return err
	}
	return o.Reflector.Check("InformerOptions.Reflector")
}

// check returns an error that names the first option that cannot be used.
func (o HandlerOptions) check() error {
	switch {
	case o.Resync < 0 || o.Resync > 0 && o.Resync < leastResync:
		return badOption("HandlerOptions.Resync", o.Resync, fmt.Sprintf("give %v or more, or 0 for none", leastResync))
	case o.Limit < 0:
		return badOption("HandlerOptions.Limit", o.Limit, "give a number of notifications, or 0 for 10,000")
	case o.Policy > Unbounded:
		return badOption("HandlerOptions.Policy", uint8(o.Policy), "use one of ConflateUpdates, ConflateState, Block and Unbounded")
	}
	return nil
}
