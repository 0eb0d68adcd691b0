package tidingstest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

// defaultPatience is the default of Server.Patience.
const defaultPatience = time.Minute

// rig is the environment of a test: namespaces of its own, an informer, and a client that
// writes.
type rig struct {
	TB
	server     Server
	kind       Kind
	gate       *gate
	client     kubernetes.Interface
	ctx        context.Context //nolint:containedctx // it is the test's
	cancel     context.CancelFunc
	namespaces []string // the namespaces that the informer holds
	outside    string   // a namespace that it must not hold, "" if it holds all
	made       []string // all namespaces that were made
	setting    Setting
	informer   Informer
	stopRun    context.CancelFunc // nil before start
	ran        chan error
	witness    *follower // a handler that is added before the informer runs
	stuck      bool      // the test leaves a handler stuck when the informer stops
	wake       chan struct{}
	over       chan struct{} // closed when the test is over

	mu        sync.Mutex // guards the rest
	followers []*follower
	places    map[string]string // the namespaces of names
	truth     map[string]string // the states that the informer should hold, by key
	version   string            // of the last write
	written   int
}

func newRig(t TB, s Server, b bound) *rig {
	t.Helper()
	if s.Patience == 0 {
		s.Patience = defaultPatience
	}
	r := &rig{
		TB: t, server: s, kind: b.kind, client: s.Client,
		wake: make(chan struct{}, 1), over: make(chan struct{}),
		places: map[string]string{}, truth: map[string]string{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if s.Config != nil {
		r.connect()
	} else {
		r.namespaces = []string{"one", "two"}
	}
	r.outside = r.namespaces[len(r.namespaces)-1]
	if n := r.kind.Namespaces; n > 0 {
		r.setting.Namespaces = r.namespaces[:n]
		r.namespaces = r.namespaces[:n]
	} else {
		r.outside = ""
	}
	r.setting.Index = index
	r.setting.Client = r.client
	r.setting.StopGrace = time.Second
	if b.set != nil {
		b.set(&r.setting)
	}
	var err error
	r.informer, err = r.kind.New(r.setting)
	r.must(err)
	r.witness = r.follow("witness", nil, tidings.HandlerOptions{})
	return r
}

// connect makes the clients, with the gate in the informer's way, and the namespaces.
func (r *rig) connect() {
	r.Helper()
	config := rest.CopyConfig(r.server.Config)
	config.QPS = -1
	r.gate = &gate{open: map[*answerBody]struct{}{}}
	gated := rest.CopyConfig(config)
	gated.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &gatedTransport{r.gate, next}
	})
	r.setting.Config = gated
	var err error
	if r.client == nil {
		r.client, err = kubernetes.NewForConfig(config)
		r.must(err)
	}
	for range max(r.kind.Namespaces, 1) + 1 {
		made, err := r.client.CoreV1().Namespaces().Create(r.ctx, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "tidings-"},
		}, metav1.CreateOptions{})
		r.must(err)
		r.made = append(r.made, made.Name)
	}
	r.namespaces = r.made
	r.setting.Labels = labelSuite + "=" + r.namespaces[0]
}

// end stops everything and reports the wrong events of all handlers.
func (r *rig) end() {
	r.Helper()
	defer r.cancel()
	close(r.over)
	if r.gate != nil {
		r.gate.change(func() {
			r.gate.shut, r.gate.answer, r.gate.onList = false, nil, nil
		})
	}
	if r.stopRun == nil {
		r.run() // its handlers end with the informer
	}
	if err := r.stop(); err != nil && !r.stuck {
		r.Errorf("P09: Run: %v", err)
	}
	for _, namespace := range r.made {
		err := r.client.CoreV1().Namespaces().Delete(r.ctx, namespace, metav1.DeleteOptions{})
		if err != nil {
			r.Errorf("deleting the namespace of the test: %v", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.followers {
		for _, wrong := range f.Wrong() {
			r.Errorf("%s: %s", f.name, wrong)
		}
	}
}

// run starts the informer. If it lists in pages, its first list is of any state that the
// server's cache has, which includes the last write after the list of this function.
func (r *rig) run() {
	r.Helper()
	if r.gate != nil && r.version != "" {
		_, err := r.client.CoreV1().ConfigMaps(r.namespaces[0]).List(r.ctx, metav1.ListOptions{
			ResourceVersion: r.version, Limit: 1,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		})
		r.check(err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	ran := make(chan error, 1)
	r.stopRun, r.ran = cancel, ran
	go func() { ran <- r.informer.Run(ctx) }()
}

// start runs the informer and waits until it and the witness are synced.
func (r *rig) start() {
	r.Helper()
	r.run()
	r.awaitClosed("the informer to sync", r.informer.Synced())
	r.awaitClosed("the witness to sync", r.witness.registration.Synced())
	if r.kind.Fake {
		r.settle() // a fake loses the writes between a list and the watch that follows it
	}
}

// stop ends the informer and returns the error of Run.
func (r *rig) stop() error {
	r.Helper()
	r.stopRun()
	timer := time.NewTimer(r.server.Patience)
	defer timer.Stop()
	select {
	case err := <-r.ran:
		r.ran <- nil // the next call returns nil
		return err
	case <-timer.C:
		return fmt.Errorf("it has not returned in %v", r.server.Patience)
	}
}

// must ends the test if there is an error.
func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%v", err)
	}
}

// poke makes await check its condition again.
func (r *rig) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// await waits until cond returns ""; otherwise cond returns a text about the missing part.
// It is called after every call of a handler, and at intervals of up to a second.
func (r *rig) await(property string, cond func() string) {
	r.Helper()
	if missing := r.waitUntil(r.server.Patience, cond); missing != "" {
		r.Fatalf("%s: after %v %s", property, r.server.Patience, missing)
	}
}

func (r *rig) waitUntil(patience time.Duration, cond func() string) string {
	end := time.Now().Add(patience)
	pause := 5 * time.Millisecond
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		r.settle()
		missing := cond()
		if missing == "" || time.Now().After(end) {
			return missing
		}
		select {
		case <-r.wake:
		case <-timer.C:
			pause = min(2*pause, time.Second)
			timer.Reset(pause)
		}
	}
}

// settle waits until all goroutines are blocked, if the server has Settle.
func (r *rig) settle() {
	if r.server.Settle != nil {
		r.server.Settle()
	}
}

// awaitClosed waits until a channel is closed, or has a value.
func (r *rig) awaitClosed(what string, c <-chan struct{}) {
	r.Helper()
	timer := time.NewTimer(r.server.Patience)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
		r.Fatalf("waited %v for %s; health: %+v", r.server.Patience, what,
			r.informer.Health())
	}
}

// isClosed reports whether a channel is closed, or has a value.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// cached returns the states in the cache, of one namespace or of all.
func (r *rig) cached(namespace string) map[string]string {
	return within(states(r.informer.List()), namespace)
}

func states(list []tidings.Object) map[string]string {
	state := map[string]string{}
	for _, obj := range list {
		state[keyOf(obj)] = follow.StateOf(obj)
	}
	return state
}

// get returns the cached state of a key, "" if there is none.
func (r *rig) get(key string) string {
	obj := r.informer.Get(key)
	if obj == nil {
		return ""
	}
	return follow.StateOf(obj)
}

// agree waits until the cache, the witness and other followers hold the states that they
// should.
func (r *rig) agree(property string, others ...*follower) {
	r.Helper()
	r.await(property, func() string {
		world := r.world("")
		if difference := differ("the cache", r.cached(""), world); difference != "" {
			return difference
		}
		for _, f := range append(others, r.witness) {
			if difference := differ("the sum of the events of "+f.name, f.Held(), world); difference != "" {
				return difference
			}
		}
		return ""
	})
}

// differ describes the differences of states from those in world, "" without any.
func differ(whose string, state, world map[string]string) string {
	var parts []string
	for key := range state {
		if _, ok := world[key]; !ok {
			parts = append(parts, fmt.Sprintf("%s is gone", key))
		}
	}
	for key, want := range world {
		if got := state[key]; got != want {
			parts = append(parts, fmt.Sprintf("%s is %s and not %q", key, want, got))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return whose + " differs from the server: " + strings.Join(parts, ", ")
}

// fence makes an object in every namespace and waits until the witness and other
// followers receive it: then they have received everything that came before.
func (r *rig) fence(others ...*follower) {
	r.Helper()
	r.mu.Lock()
	n := r.written
	r.mu.Unlock()
	for i, namespace := range r.namespaces {
		key := source.Key(namespace, fmt.Sprintf("fence-%d-%d", n, i))
		r.must(r.tryCreate(key, nil))
		r.await("P01", func() string {
			for _, f := range append(others, r.witness) {
				if f.Held()[key] == "" {
					return fmt.Sprintf("%s has not received %s; health: %+v",
						f.name, key, r.informer.Health())
				}
			}
			return ""
		})
	}
	r.settle()
}

// offline keeps the informer without a connection while f writes. Then older versions are
// expired, so that it has to list. The last write of f must not be a delete.
func (r *rig) offline(f func()) {
	r.Helper()
	r.gate.close()
	f()
	r.mu.Lock()
	version := r.version
	r.mu.Unlock()
	r.gate.change(func() { r.gate.shut, r.gate.forgotten = false, version })
}

// expect compares events with texts, except those of fences, in each namespace. The events
// of two namespaces, and those of an initial set, have no order.
func (r *rig) expect(property string, events []follow.Event, want ...string) {
	r.Helper()
	byNamespace := map[string][2][]string{}
	add := func(key, text string, side int) {
		namespace, _, _ := strings.Cut(key, "/")
		both := byNamespace[namespace]
		both[side] = append(both[side], text)
		byNamespace[namespace] = both
	}
	for _, e := range events {
		// A drop-in repeats objects that a relist finds unchanged.
		if !strings.Contains(e.Key, "/fence-") && !(r.kind.DropIn && e.Resync) {
			add(e.Key, e.String(), 0)
		}
	}
	for _, text := range want {
		add(strings.Fields(text)[1], text, 1)
	}
	for namespace, both := range byNamespace {
		initial := 0
		for initial < len(both[0]) && strings.Contains(both[0][initial], " initial ") {
			initial++
		}
		slices.Sort(both[0][:initial])
		if !slices.Equal(both[0], both[1]) {
			r.Errorf("%s: received in %s\n %s\nwant\n %s", property, namespace,
				strings.Join(both[0], "\n "), strings.Join(both[1], "\n "))
		}
	}
}
