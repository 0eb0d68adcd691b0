package contract_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/informers"
)

const (
	relistedPods = 10_000
	relistPage   = 500
	protobuf     = "application/vnd.kubernetes.protobuf"
)

// canned is a server whose answers were encoded before, so that they take the same
// memory all the time: the same pods in each list, streamed or in pages, and watches that
// bring nothing until they expire.
type canned struct {
	paged    bool
	streamed []byte
	pages    map[string][]byte // by token
	expired  []byte            // the frame that ends a watch
	expire   chan struct{}     // a token ends a watch
	watching chan struct{}     // gets a token when a list was read and its watch waits
}

func newCanned(t *testing.T) *canned {
	t.Helper()
	c := &canned{pages: map[string][]byte{}}
	encoded := func(o interface{ Marshal() ([]byte, error) }) []byte {
		raw, err := o.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	envelope := func(kind string, raw []byte) []byte {
		return append([]byte("k8s\x00"), encoded(&k8sruntime.Unknown{
			TypeMeta: k8sruntime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw,
		})...)
	}
	frame := func(eventType, kind string, raw []byte) []byte {
		object := k8sruntime.RawExtension{Raw: envelope(kind, raw)}
		whole := encoded(&metav1.WatchEvent{Type: eventType, Object: object})
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(whole))), whole...)
	}
	const version = "9000000"
	for first := 0; first < relistedPods; first += relistPage {
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
		if last := first + relistPage; last < relistedPods {
			list.Continue = strconv.Itoa(last)
		}
		for i := first; i < first+relistPage; i++ {
			p := benchPod(i)
			p.Name, p.ResourceVersion = fmt.Sprintf("pod-%05d", i), strconv.Itoa(1000+i)
			list.Items = append(list.Items, *p)
			c.streamed = append(c.streamed, frame("ADDED", "Pod", encoded(p))...)
		}
		token := strconv.Itoa(first)
		if first == 0 {
			token = ""
		}
		c.pages[token] = envelope("PodList", encoded(list))
	}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: version,
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	c.streamed = append(c.streamed, frame("BOOKMARK", "Pod", encoded(end))...)
	c.expired = frame("ERROR", "Status", encoded(&metav1.Status{
		Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired,
	}))
	return c
}

// with returns a server of its own with the same answers.
func (c canned) with(paged bool) *canned {
	c.paged, c.expire, c.watching = paged, make(chan struct{}), make(chan struct{}, 10)
	return &c
}

// RoundTrip answers a request.
func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {protobuf}},
		Request: r, ContentLength: -1,
	}
	query := r.URL.Query()
	if query.Get("watch") == "" {
		answer.Body = io.NopCloser(bytes.NewReader(c.pages[query.Get("continue")]))
		return answer, nil
	}
	answer.Header.Set("Content-Type", protobuf+";stream=watch")
	body := &expiring{canned: c, ctx: r.Context(), rest: bytes.NewReader(nil)}
	if query.Get("sendInitialEvents") != "" {
		if c.paged {
			answer.StatusCode, answer.Body = http.StatusBadRequest, http.NoBody
			return answer, nil
		}
		body.rest.Reset(c.streamed)
	}
	answer.Body = body
	return answer, nil
}

// expiring is the body of a watch: its first bytes at once, and the frame of an expired version
// when it expires.
type expiring struct {
	*canned
	ctx  context.Context
	rest *bytes.Reader
	over bool
}

func (e *expiring) Close() error { return nil }

func (e *expiring) Read(p []byte) (int, error) {
	if e.rest.Len() == 0 && !e.over {
		e.over = true
		e.watching <- struct{}{}
		select {
		case <-e.expire:
			e.rest.Reset(e.expired)
		case <-e.ctx.Done():
		}
	}
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.rest.Read(p)
}

// inUse returns the bytes of the heap that are in use.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one has found to be finalized, and pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// allocated returns the number of bytes that were ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestRelistTakesLittleMemory reads 10,000 pods, and again when the watch has expired. The
// peak of the second list is at most the memory in use plus all that is allocated meanwhile,
// whenever the garbage collector runs; it must be within 1.2 times the memory of the cache.
func TestRelistTakesLittleMemory(t *testing.T) {
	answers := newCanned(t)
	for stack, sync := range map[string]func(*testing.T, *canned) func(){
		"native": syncNative, "drop-in": syncDropIn,
	} {
		for _, paged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, paged %v", stack, paged), func(t *testing.T) {
				c := answers.with(paged)
				before := inUse()
				stop := sync(t, c)
				defer stop()
				<-c.watching
				steady := inUse() - before
				defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the caches of package sync count once
				begin := allocated()
				c.expire <- struct{}{}
				<-c.watching
				peak := steady + allocated() - begin
				ratio := float64(peak) / float64(steady)
				t.Logf("%d bytes per pod are cached, peak %.2f of that", steady/relistedPods, ratio)
				if ratio > 1.2 {
					t.Errorf("the peak of a relist is %.2f times the steady state, want 1.2", ratio)
				}
			})
		}
	}
}

func syncNative(t *testing.T, c *canned) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	config := &rest.Config{Host: "http://canned.invalid", QPS: -1, Transport: c}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	informer, err := tidings.For[*corev1.Pod](factory, tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := factory.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	return func() {
		if h := informer.Health(); h.Objects != relistedPods || h.Lists < 2 ||
			h.Decoding.Shared > relistedPods+2 {
			t.Errorf("%+v", h)
		}
		cancel()
		if err := factory.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func syncDropIn(t *testing.T, c *canned) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	config := &rest.Config{Host: "http://canned.invalid", QPS: -1, Transport: c}
	config.ContentType, config.AcceptContentTypes = protobuf, protobuf+",application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(deaf{}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	return func() {
		if n := len(informer.GetStore().ListKeys()); n != relistedPods {
			t.Errorf("%d pods are cached", n)
		}
		cancel()
		factory.Shutdown()
	}
}

// deaf is a handler of the drop-in that does nothing.
type deaf struct{}

func (deaf) OnAdd(any, bool) {}

func (deaf) OnUpdate(any, any) {}

func (deaf) OnDelete(any) {}
