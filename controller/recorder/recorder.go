package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
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
	if config == nil {
		return nil, errors.New("recorder: New: the rest.Config is nil: load one with clientcmd or rest.InClusterConfig")
	}
	if err := checkName(controller); err != nil {
		return nil, fmt.Errorf("recorder: New: %w", err)
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

// The server's limits of the fields of an event, in bytes: ValidateEventCreate of
// k8s.io/kubernetes/pkg/apis/core/validation.
const (
	mostReason = 128 // of the reason, the action and the name of the instance
	mostNote   = 1024
)

// checkName returns an error for the name of a controller with which the server refuses every
// event. An event has the name, and that of the instance: the name, "-" and the name of the host.
func checkName(controller string) error {
	if problems := validation.IsQualifiedName(controller); len(problems) > 0 {
		return fmt.Errorf("the name of the controller is %q, and the server refuses its events: %s",
			controller, strings.Join(problems, "; "))
	}
	host, _ := os.Hostname() // as client-go's recorder does
	if n := len(controller) + 1 + len(host); n > mostReason {
		return fmt.Errorf("the name of the controller, %.20q…, and the name of the host %s have %d bytes with the \"-\" "+
			"between them: the server refuses events of more than %d", controller, host, n, mostReason)
	}
	return nil
}

// clip shortens a text to a number of bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const rest = "…"
	return strings.ToValidUTF8(text[:most-len(rest)], "") + rest
}

// Eventf records an event of the type Normal or Warning. The event regards an object, and may be
// related to another one; nil is no other one. reason is the reason for the action, and action
// names the action, both in CamelCase; one that is empty is the other one. note is a text for
// people. What is longer than the server takes is shortened: 128 bytes of reason and action, 1,024
// of the note.
func (r *Recorder) Eventf(
	regarding, related runtime.Object, eventType, reason, action, note string, args ...any,
) {
	r.mu.Lock()
	r.last = time.Now()
	r.mu.Unlock()
	reason, action = clip(cmp.Or(reason, action), mostReason), clip(cmp.Or(action, reason), mostReason)
	r.recorder.Eventf(regarding, related, eventType, reason, action, "%s", clip(fmt.Sprintf(note, args...), mostNote))
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
