package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// flush is the least time that each event has to be sent before Close drops it.
const flush = time.Second

// Options are the choices of a [Recorder]. The zero value is ready.
type Options struct {
	// Scheme has the kinds of the objects that events regard; nil is client-go's scheme, which
	// has the built-in kinds.
	Scheme *runtime.Scheme
}

// Recorder records events. Use [New].
type Recorder struct {
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
	cancel      context.CancelFunc

	mu   sync.Mutex // guards last
	last time.Time  // the time of the last call of Eventf; zero before the first one
}

// New returns a recorder of the events of a controller. Close it at the end.
func New(config *rest.Config, controller string, o Options) (*Recorder, error) {
	if controller == "" {
		return nil, errors.New("recorder: New: the name of the controller is empty: " +
			"the server refuses events without one")
	}
	o.Scheme = cmp.Or(o.Scheme, scheme.Scheme)
	client, err := typedeventsv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("recorder: New: %w", err)
	}
	b := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	ctx, cancel := context.WithCancel(context.Background())
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("recorder: New: %w", err)
	}
	return &Recorder{
		broadcaster: b, recorder: b.NewRecorder(o.Scheme, controller), cancel: cancel,
	}, nil
}

// Eventf records an event of the type Normal or Warning. The event regards an object, and may be
// related to another one; nil is no other one. reason is the reason for the action, and action
// names the action, both in CamelCase. note is a text for people.
func (r *Recorder) Eventf(
	regarding, related runtime.Object, eventType, reason, action, note string, args ...any,
) {
	r.mu.Lock()
	r.last = time.Now()
	r.mu.Unlock()
	r.recorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// Close waits until each event had one second to be sent, and ends the recorder. Call Eventf no
// more.
func (r *Recorder) Close() {
	r.mu.Lock()
	last := r.last
	r.mu.Unlock()
	time.Sleep(flush - time.Since(last))
	r.cancel()
	r.broadcaster.Shutdown()
}
