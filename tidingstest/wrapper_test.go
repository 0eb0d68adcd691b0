package tidingstest

import (
	"context"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
)

// broken is an informer with a defect.
type broken struct {
	Informer
	// around replaces a handler; late reports whether the informer was synced.
	around func(handle func(Event), late bool) func(Event)
	// joined replaces a registration.
	joined func(Registration) Registration
	synced func(Informer) <-chan struct{}
	list   func([]tidings.Object) []tidings.Object
	get    func(Informer, string) tidings.Object
	index  func(Informer, string) ([]string, error)
	health func(tidings.Health) tidings.Health
	wait   func(context.Context, string) error
	after  func() // Run
	option func(*tidings.HandlerOptions)
}

func (b *broken) AddHandler(handle func(Event), o tidings.HandlerOptions) (Registration, error) {
	if b.around != nil {
		handle = b.around(handle, isClosed(b.Informer.Synced()))
	}
	if b.option != nil {
		b.option(&o)
	}
	r, err := b.Informer.AddHandler(handle, o)
	if err == nil && b.joined != nil {
		r = b.joined(r)
	}
	return r, err
}

func (b *broken) Synced() <-chan struct{} {
	if b.synced != nil {
		return b.synced(b.Informer)
	}
	return b.Informer.Synced()
}

func (b *broken) List() []tidings.Object {
	if b.list != nil {
		return b.list(b.Informer.List())
	}
	return b.Informer.List()
}

func (b *broken) Get(key string) tidings.Object {
	if b.get != nil {
		return b.get(b.Informer, key)
	}
	return b.Informer.Get(key)
}

func (b *broken) Indexed(value string) ([]string, error) {
	if b.index != nil {
		return b.index(b.Informer, value)
	}
	return b.Informer.Indexed(value)
}

func (b *broken) Health() tidings.Health {
	if b.health != nil {
		return b.health(b.Informer.Health())
	}
	return b.Informer.Health()
}

func (b *broken) WaitFor(ctx context.Context, version string) error {
	if b.wait != nil {
		return b.wait(ctx, version)
	}
	return b.Informer.WaitFor(ctx, version)
}

func (b *broken) Run(ctx context.Context) error {
	err := b.Informer.Run(ctx)
	if b.after != nil {
		b.after()
	}
	return err
}

// impostor is a registration with other answers.
type impostor struct {
	Registration
	remove       func()
	synced, done <-chan struct{}
}

// of replaces a registration.
func (i impostor) of(r Registration) Registration {
	i.Registration = r
	return i
}

func (i impostor) Remove() {
	if i.remove != nil {
		i.remove()
		return
	}
	i.Registration.Remove()
}

func (i impostor) Synced() <-chan struct{} {
	if i.synced != nil {
		return i.synced
	}
	return i.Registration.Synced()
}

func (i impostor) Done() <-chan struct{} {
	if i.done != nil {
		return i.done
	}
	return i.Registration.Done()
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// changing is a defect of the events that a handler receives: f returns those instead of an
// event.
func changing(f func() func(e Event) []Event) func(*broken) {
	return func(b *broken) {
		b.around = func(handle func(Event), _ bool) func(Event) {
			change := f()
			return func(e Event) {
				for _, other := range change(e) {
					handle(other)
				}
			}
		}
	}
}

// one is a changing without state.
func one(f func(e Event) []Event) func(*broken) {
	return changing(func() func(Event) []Event { return f })
}

// forgiving forgets the errors of Run.
type forgiving struct{ Informer }

func (f forgiving) Run(ctx context.Context) error {
	f.Informer.Run(ctx) //nolint:errcheck // that is the defect
	return nil
}

// forgetful answers every watch that resumes another as if its version were gone.
type forgetful struct {
	next http.RoundTripper

	mu   sync.Mutex // guards seen
	seen bool       // there was a watch
}

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("watch") != "" && query.Get("resourceVersion") != "" &&
		query.Get("sendInitialEvents") != "true" {
		f.mu.Lock()
		seen := f.seen
		f.seen = !seen
		f.mu.Unlock()
		if seen {
			return refusal(r, http.StatusGone, metav1.StatusReasonExpired, 0), nil
		}
	}
	return f.next.RoundTrip(r)
}

// impatient repeats each refused request twenty times.
type impatient struct{ next http.RoundTripper }

func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := i.next.RoundTrip(r)
	for range 20 {
		if err != nil || answer.StatusCode < 400 {
			break
		}
		if err := answer.Body.Close(); err != nil {
			return nil, err
		}
		answer, err = i.next.RoundTrip(r)
	}
	return answer, err
}
