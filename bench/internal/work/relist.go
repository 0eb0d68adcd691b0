package work

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// relist is a watch that ends with 410 Gone, and the list after it, while someone reads.
type relist struct{}

func (relist) Name() string { return "relist" }

func (relist) Cases(s Size) []Case {
	n := pick(s, 300, 3_000, 50_000)
	var cases []Case
	for _, way := range []server.Way{server.Streamed, server.Paged} {
		spec := spec(objects.Pods, n, server.Protobuf, way)
		spec.Relist = true
		cases = append(cases, Case{Work: "relist", Server: spec, Seed: seed, Objects: n, Handlers: 1})
	}
	return cases
}

func (relist) Run(ctx context.Context, r Run) (m Metrics, err error) {
	if err := post(ctx, r.URL+"/reset"); err != nil {
		return nil, err
	}
	made, err := r.Stack.FromServer(r.target(), stack.Options{})
	if err != nil {
		return nil, err
	}
	want := server.After(r.Objects)
	var got changes
	got.expect(want)
	informer, err := begin(ctx, made, got.handler())
	if err != nil {
		return nil, err
	}
	kept := keysThatStay(r)
	steady, err := measure.Resident()
	if err != nil {
		return nil, err
	}
	if err := measure.ResetPeak(); err != nil {
		return nil, err
	}
	reading := startReading(informer, kept)
	got.begin()
	usage, err := measure.Of(func() error {
		if err := post(ctx, r.URL+"/relist"); err != nil {
			return err
		}
		return got.await(ctx)
	})
	reads := reading.stop()
	if err != nil {
		return nil, err
	}
	peak, err := measure.Peak()
	if err != nil {
		return nil, err
	}
	if n := informer.Len(); n != r.Objects-want.Deleted+want.Added {
		return nil, fmt.Errorf("relist: %d objects are cached, want %d", n, r.Objects-want.Deleted+want.Added)
	}
	if reads.missing > 0 {
		return nil, fmt.Errorf("relist: %d of %d reads did not find an object that was there all the time", reads.missing, reads.all)
	}
	m.add("peak over steady resident set", "×", float64(peak)/float64(steady))
	m.bytes("peak above steady, per object", peak, steady, r.Objects)
	m.seconds("longest read", reads.longest, 1)
	m.seconds("time in reads over 1 ms", reads.slow, 1)
	m.seconds("time to the last change", usage.Wall, 1)
	m.seconds("CPU of relist and reader", usage.CPU, 1)
	m.bytes("allocated per object", usage.Bytes, 0, r.Objects)
	return m, informer.stop()
}

// keysThatStay returns keys that a relist does not delete.
func keysThatStay(r Run) []string {
	var keys []string
	for i := 2; i < r.Objects; i += 100 {
		o := r.Server.Kind.New(r.Seed, i)
		keys = append(keys, o.GetNamespace()+"/"+o.GetName())
	}
	return keys
}

// changes counts what a handler is told of a relist.
type changes struct {
	mu   sync.Mutex // guards what follows
	on   bool       // the first list is over
	got  server.Counts
	want server.Counts
	done chan struct{} // closed when got is want
}

func (c *changes) expect(want server.Counts) { c.want, c.done = want, make(chan struct{}) }

func (c *changes) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = true
}

func (c *changes) count(change func(*server.Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.on {
		return
	}
	before := c.got
	change(&c.got)
	if before != c.want && c.got == c.want {
		close(c.done)
	}
}

// handler counts. An update between equal versions, which client-go tells of everything
// that a relist finds unchanged, is no change.
func (c *changes) handler() stack.Handler {
	return stack.Handler{
		Add: func(metav1.Object) { c.count(func(n *server.Counts) { n.Added++ }) },
		Update: func(before, after metav1.Object) {
			if before.GetResourceVersion() != after.GetResourceVersion() {
				c.count(func(n *server.Counts) { n.Changed++ })
			}
		},
		Delete: func(metav1.Object) { c.count(func(n *server.Counts) { n.Deleted++ }) },
	}
}

func (c *changes) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("relist: the handler was told of %+v, want %+v: %w", c.got, c.want, context.Cause(ctx))
	}
}

// reading is a goroutine that gets one object after another. stop ends it.
type reading struct {
	end  chan struct{}
	done chan readTimes
}

// readTimes says how long reads took.
type readTimes struct {
	all, missing  int
	longest, slow time.Duration // slow is the sum of those over a millisecond
}

func startReading(informer stack.Informer, keys []string) *reading {
	r := &reading{end: make(chan struct{}), done: make(chan readTimes, 1)}
	go func() {
		var t readTimes
		for {
			select {
			case <-r.end:
				r.done <- t
				return
			default:
			}
			begin := time.Now()
			_, ok := informer.Get(keys[t.all%len(keys)])
			took := time.Since(begin)
			t.all++
			if !ok {
				t.missing++
			}
			if t.longest = max(t.longest, took); took > time.Millisecond {
				t.slow += took
			}
		}
	}()
	return r
}

func (r *reading) stop() readTimes {
	close(r.end)
	return <-r.done
}

// post asks a server for something.
func post(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("work: POST %s: %s", url, response.Status)
	}
	return nil
}
