package tidings

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidings-go/tidings/internal/engine"
)

// Errors of asking for an informer.
var (
	// ErrNilFactory is a nil *Factory given to For, Dynamic or Metadata.
	ErrNilFactory = errors.New("the factory is nil: make one with NewFactory")
	// ErrNotInScheme is a Go type that the factory's scheme does not know.
	ErrNotInScheme = errors.New("the type is not in the factory's scheme: " +
		"register it with its package's AddToScheme and pass that scheme as FactoryOptions.Scheme")
	// ErrClusterScoped is a namespace asked of a type whose objects have none.
	ErrClusterScoped = engine.ErrClusterScoped
	// ErrInvalidSelection is a selection that contradicts itself or cannot be parsed.
	ErrInvalidSelection = errors.New("invalid selection")
)

// Errors of adding namespaces to an informer and removing them.
var (
	// ErrAllNamespaces is a namespace added to or removed from an informer of all
	// namespaces.
	ErrAllNamespaces = engine.ErrAllNamespaces
	// ErrLastNamespace is the removal of the only namespace.
	ErrLastNamespace = engine.ErrLastNamespace
)

// Errors of using an informer.
var (
	// ErrReleased is the use of a handle after its Release.
	ErrReleased = engine.ErrReleased
	// ErrStopped is the use of an informer that has stopped or is stopping, or of a factory
	// that was shut down.
	ErrStopped = engine.ErrStopped
	// ErrRanAlready is a second Run of an informer, or a Run of one that its
	// factory runs.
	ErrRanAlready = engine.ErrRanAlready
	// ErrNotStarted is waiting for an informer that was not started.
	ErrNotStarted = errors.New("it was not started: call Start on its factory, or Run")
	// ErrHandlersStuck is a stop that found handler calls which did not return.
	ErrHandlersStuck = engine.ErrHandlersStuck
	// ErrGoexit is the end of an informer whose transform or index function has called
	// runtime.Goexit, as a test does that fails there.
	ErrGoexit     = engine.ErrGoexit
	errNilContext = errors.New("the context is nil: " +
		"pass the one that ends with the program, or context.Background")
)

func informerError(name string, err error) error {
	return fmt.Errorf("tidings: informer %s: %w", name, err)
}

// NotSyncedError names the informers that are not synced, and the reasons. It unwraps to the cause
// of the end of the wait and to the last error of each informer.
type NotSyncedError struct {
	// Informers are the ones that are not synced.
	Informers []Health
	// Cause is the reason for the end of the wait: the context's error, or ErrNotStarted,
	// ErrStopped or ErrReleased. Factory.Ready does not wait: its cause is ErrStopped or an error
	// that says so.
	Cause error
}

// Error lists the informers, each with its state and its last error.
func (e *NotSyncedError) Error() string {
	informers := "1 informer is"
	if n := len(e.Informers); n > 1 {
		informers = fmt.Sprintf("%d informers are", n)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tidings: %s not synced", informers)
	if !errors.Is(e.Cause, ErrNotStarted) { // which the lines below say of each
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	for _, h := range e.Informers {
		fmt.Fprintf(&b, "\n  %s is %s", h.Name, h.State)
		switch {
		case h.LastError != nil && h.State != StateWatching:
			fmt.Fprintf(&b, ": %v", h.LastError)
		case h.State == StatePending:
			b.WriteString(": call Start after asking for it")
		case h.State == StateListing:
			fmt.Fprintf(&b, ", %d objects so far", h.Listed)
		}
	}
	return b.String()
}

// Unwrap returns the causes.
func (e *NotSyncedError) Unwrap() []error {
	causes := []error{e.Cause}
	for _, h := range e.Informers {
		if h.LastError != nil {
			causes = append(causes, h.LastError)
		}
	}
	return causes
}

func badOption(field string, value any, remedy string) error {
	return fmt.Errorf("%s is %v: %s", field, value, remedy)
}
