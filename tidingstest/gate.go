package tidingstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// gate is between an informer and the server: it counts the requests, can answer them, and
// can lose connections. The writes of the test do not pass through it.
type gate struct {
	mu        sync.Mutex // guards the rest
	shut      bool
	forgotten string // watches from versions before it receive 410 Gone
	answer    func(*http.Request) *http.Response
	onList    func()
	oldLists  chan struct{} // holds back the answers to lists until it is closed; nil does not
	heldBack  int           // answers to lists that it has held back
	open      map[*answerBody]struct{}
	requests  int // that were sent
	begun     int // lists, streamed or in pages
}

// errCut is the error of a connection that the gate has cut.
var errCut = errors.New("connection reset by the test")

// gatedTransport sends requests through a transport as the gate allows.
type gatedTransport struct {
	gate *gate
	next http.RoundTripper
}

// RoundTrip passes the gate.
func (p *gatedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.gate.roundTrip(r, p.next)
}

// roundTrip sends a request on, unless the gate is in its way.
func (g *gate) roundTrip(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	answer, lists, err := g.admit(r)
	if answer != nil || err != nil {
		return answer, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	body := &answerBody{gate: g, ctx: ctx, cancel: cancel}
	g.mu.Lock()
	g.open[body] = struct{}{}
	if lists && g.oldLists != nil {
		body.stalled = g.oldLists
		g.heldBack++
	}
	g.mu.Unlock()
	answer, err = next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		g.forget(body)
		cancel()
		if body.isCut() {
			err = errCut
		}
		return nil, err
	}
	body.ReadCloser = answer.Body
	answer.Body = body
	return answer, nil
}

// admit counts a request, and answers or refuses it if it must not reach the server. It reports
// whether the request begins a list.
func (g *gate) admit(r *http.Request) (answer *http.Response, lists bool, err error) {
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	watches := query.Get("watch") != "" && query.Get("watch") != "false"
	streams := query.Get("sendInitialEvents") == "true"
	looks := query.Get("limit") == "1" // a list of one object, which only asks for the server's version
	lists = (!watches || streams) && query.Get("continue") == "" && !looks
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests++
	if lists {
		g.begun++
	}
	if g.shut {
		return nil, lists, errCut
	}
	if g.answer != nil {
		if answer = g.answer(r); answer != nil {
			return answer, lists, nil
		}
	}
	if watches && !streams && g.forgotten != "" && version != "" {
		order, err := resourceversion.CompareResourceVersion(version, g.forgotten)
		if err == nil && order < 0 {
			return refusal(r, http.StatusGone, metav1.StatusReasonExpired, 0), lists, nil
		}
	}
	if lists && g.onList != nil {
		g.onList()
	}
	return nil, lists, nil
}

// refusal answers a request with a status.
func refusal(r *http.Request, code int, reason metav1.StatusReason, retryAfter int) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: "refused by the test",
	})
	if err != nil {
		panic(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Header: header, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// change changes the gate, under its lock.
func (g *gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// cut ends every answer that is being read.
func (g *gate) cut() {
	g.change(func() {
		for body := range g.open {
			body.cutLocked()
		}
	})
}

// close cuts all connections and refuses new requests.
func (g *gate) close() {
	g.change(func() { g.shut = true })
	g.cut()
}

// stall holds back the answers to all requests that are open now, until the returned
// function is called.
func (g *gate) stall() (proceed func()) {
	stalled := make(chan struct{})
	g.change(func() {
		for body := range g.open {
			body.stalled = stalled
		}
	})
	return func() { close(stalled) }
}

// holdLists holds back the answers to lists that begin from now on. The returned functions tell how
// many are held back, and let them go on.
func (g *gate) holdLists() (held func() int, proceed func()) {
	stalled := make(chan struct{})
	g.change(func() { g.oldLists, g.heldBack = stalled, 0 })
	held = func() (n int) {
		g.change(func() { n = g.heldBack })
		return n
	}
	return held, func() {
		g.change(func() { g.oldLists = nil })
		close(stalled)
	}
}

// lists returns the number of lists that were begun.
func (g *gate) lists() (n int) {
	g.change(func() { n = g.begun })
	return n
}

// sent returns the number of requests.
func (g *gate) sent() (n int) {
	g.change(func() { n = g.requests })
	return n
}

func (g *gate) forget(b *answerBody) {
	g.change(func() { delete(g.open, b) })
}

// answerBody is an answer that the gate can cut and stall.
type answerBody struct {
	io.ReadCloser
	gate    *gate
	ctx     context.Context //nolint:containedctx // it is the request's
	cancel  context.CancelFunc
	cut     bool          // guarded by the gate
	stalled chan struct{} // guarded by the gate; its close ends the stall
}

func (b *answerBody) cutLocked() {
	b.cut = true
	b.cancel()
}

func (b *answerBody) isCut() (cut bool) {
	b.gate.change(func() { cut = b.cut })
	return cut
}

// Read returns the data that was read before the cut. While the gate stalls, it blocks.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	var stalled chan struct{}
	b.gate.change(func() { stalled = b.stalled })
	if stalled != nil {
		select {
		case <-stalled:
		case <-b.ctx.Done():
			return 0, errCut
		}
	}
	if b.isCut() {
		return 0, errCut
	}
	return n, err
}

// Close ends the answer.
func (b *answerBody) Close() error {
	b.gate.forget(b)
	b.cancel()
	return b.ReadCloser.Close()
}
