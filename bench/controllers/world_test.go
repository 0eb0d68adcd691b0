package controllers

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
)

const (
	leaseDuration = 15 * time.Second
	leaseName     = "program"
	opsNamespace  = "ops"
)

// world is a server, in a bubble.
type world struct {
	*testing.T
	server *apisim.Server
}

// inWorld runs a case in a bubble. Programs end with it.
func inWorld(t *testing.T, test func(*world)) { inWorldOf(t, apisim.Options{}, test) }

// inWorldOf is inWorld with a server of these options.
func inWorldOf(t *testing.T, o apisim.Options, test func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, o.Start(t)}
		// The calls of a process that has ended still run in this one, when the programs are
		// stopped.
		t.Cleanup(func() { time.Sleep(time.Minute) })
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: opsNamespace}})
		test(w)
	})
}

// config returns the configuration of a program, which reaches the server under a host of its own.
func (w *world) config(name string) *rest.Config {
	config := w.server.Config()
	config.Host, config.QPS = "http://"+hostOf(name), -1
	return config
}

// hostOf returns the host under which a program reaches the server.
func hostOf(name string) string { return name + ".invalid" }

func (w *world) create(o object) {
	w.Helper()
	if _, err := w.server.Create(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

// change writes the next state of a deployment, past all clients.
func (w *world) change(namespace, name string, change func(*appsv1.Deployment)) *appsv1.Deployment {
	w.Helper()
	d, err := apisim.Get[*appsv1.Deployment](w.Context(), w.server, namespace, name)
	if err != nil {
		w.Fatal(err)
	}
	change(d)
	if d, err = apisim.Update(w.Context(), w.server, d); err != nil {
		w.Fatal(err)
	}
	return d
}

// await waits until a condition is met.
func (w *world) await(what string, met func() bool) {
	w.Helper()
	for range 6_000 {
		if synctest.Wait(); met() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.Fatalf("after a minute: %s", what)
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
}

// keyOf returns the key of an object.
func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// program is a controller of deployments.
type program struct {
	// name is the host under which it reaches the server, and the identity in the election.
	name    string
	workers int
	elected bool
	// releases makes client-go's elector release the lease when the program stops. Tidings does
	// so in any case.
	releases bool
	// call is called with a key and the cached state, nil without one. It returns a delay
	// for another call, 0 for none.
	call func(ctx context.Context, key string, d *appsv1.Deployment, c client) (time.Duration, error)
}

// client writes for a call.
type client interface {
	update(ctx context.Context, d *appsv1.Deployment) (*appsv1.Deployment, error)
	updateStatus(ctx context.Context, d *appsv1.Deployment) (*appsv1.Deployment, error)
}

// process is a program that runs.
type process struct {
	program
	stop context.CancelFunc
	// crash ends the process without a word: it makes no more calls, and its requests are lost.
	crash   func()
	ended   chan struct{} // closed when its main function has returned
	endedAt time.Time     // set before
	dead    atomic.Bool
}

// start runs a program until the test ends. main is its main function.
func start(t *testing.T, p program, main func(ctx context.Context, p program) error) *process {
	ctx, stop := context.WithCancel(t.Context())
	r := &process{program: p, stop: stop, ended: make(chan struct{})}
	inner := p.call
	p.call = func(
		ctx context.Context, key string, d *appsv1.Deployment, c client,
	) (time.Duration, error) {
		if r.gone() {
			return 0, context.Canceled
		}
		return inner(ctx, key, d, c)
	}
	go func() {
		defer close(r.ended)
		err := main(ctx, p)
		r.endedAt = time.Now()
		if err != nil && ctx.Err() == nil {
			t.Logf("program %s ended: %v", p.name, err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
	})
	return r
}

// gone reports whether the process has ended. The acts of its goroutines then do not count: in
// another process, they would have ended with it.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return p.dead.Load()
	}
}

// log has the entries that calls write.
type log[T any] struct {
	mu      sync.Mutex // guards entries
	entries []T
}

func (l *log[T]) add(e T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

func (l *log[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]T(nil), l.entries...)
}
