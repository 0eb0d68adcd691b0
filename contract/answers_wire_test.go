package contract_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// bytesOf are read one after the other; after the last one there are zeros.
type bytesOf struct{ rest []byte }

func (b *bytesOf) next() byte {
	if len(b.rest) == 0 {
		return 0
	}
	first := b.rest[0]
	b.rest = b.rest[1:]
	return first
}

// number is of two bytes.
func (b *bytesOf) number() int { return int(b.next()) | int(b.next())<<8 }

// piece is as long as the next two bytes say, or as there is.
func (b *bytesOf) piece() []byte {
	n := min(b.number(), len(b.rest))
	piece := b.rest[:n]
	b.rest = b.rest[n:]
	return piece
}

func pick[T any](b *bytesOf, from []T) T { return from[int(b.next())%len(from)] }

// maxAnswers bounds the number of requests that are answered with an untruth.
const maxAnswers = 24

// The kinds of answers, by their first byte. The bytes after it have the rest.
const (
	honestly = iota // the true answer
	spoilt          // the true answer, spoilt: how, and after how many bytes
	// A status, a type, a Retry-After, and the body in pieces: a pause, a length, the bytes;
	// then how it ends.
	invented
	broken   // no connection
	mute     // no answer
	changing // the true answer, of a collection that has changed meanwhile
	late     // the true answer, after a pause
	kindsOfAnswers
)

// How a body ends, or goes on.
const (
	inOrder = iota // io.EOF
	cut            // the connection breaks
	silent         // nothing more comes
	flipped        // the next byte is another one, and then it goes on
	paused         // it goes on after a pause
	waysToEnd
)

var (
	statuses = []int{
		200, 200, 200, 200, 204, 301, 400, 401, 403, 404, 405, 406, 410, 422, 429, 500, 503, 504,
	}
	mediaTypes = []string{
		"application/json", "application/vnd.kubernetes.protobuf",
		"application/vnd.kubernetes.protobuf;stream=watch", "application/json;stream=watch",
		"text/html", "",
	}
	retryAfters = []string{"", "1", "30", "-1", "soon", "4294967297", "99999999999999999999"}
	pauses      = []time.Duration{0, 0, time.Second, 59 * time.Second, 3 * time.Minute, 20 * time.Minute}
)

var errBroken = errors.New("the connection broke")

// answers is an http.RoundTripper that answers as bytes say, until there are none left, or
// enough were answered, or the end.
type answers struct {
	honest http.RoundTripper
	write  func(n int) // changes the collection

	mu     sync.Mutex // guards the rest
	script *bytesOf
	given  int
	ended  bool
}

// end makes it honest, but for the answers that have begun.
func (a *answers) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

// planned is one answer, read from the bytes.
type planned struct {
	kind, how  int
	at, change int
	status     int
	mediaType  string
	retryAfter string
	pause      time.Duration
	pieces     []piece
	mask       byte
}

// piece is a part of a body and the pause before it.
type piece struct {
	pause time.Duration
	data  []byte
}

func (a *answers) plan() planned {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.given == maxAnswers || len(a.script.rest) == 0 {
		return planned{kind: honestly}
	}
	a.given++
	b := a.script
	p := planned{kind: int(b.next()) % kindsOfAnswers, change: a.given}
	switch p.kind {
	case spoilt:
		p.how, p.at, p.mask, p.pause = int(b.next())%waysToEnd, b.number(), b.next()|1, pick(b,
			pauses)
	case invented:
		p.status, p.mediaType, p.retryAfter = pick(b, statuses), pick(b, mediaTypes), pick(b,
			retryAfters)
		for range b.next() % 8 {
			p.pieces = append(p.pieces, piece{pause: pick(b, pauses), data: b.piece()})
		}
		p.how = int(b.next()) % (silent + 1)
	case late:
		p.pause = pick(b, pauses)
	}
	return p
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	p := a.plan()
	switch p.kind {
	case broken:
		return nil, errBroken
	case mute:
		return nil, wait(r.Context(), -1)
	case invented:
		return p.invent(r), nil
	case changing:
		a.write(p.change)
	case late:
		if err := wait(r.Context(), p.pause); err != nil {
			return nil, err
		}
	}
	resp, err := a.honest.RoundTrip(r)
	if err == nil && p.kind == spoilt {
		resp.Body = &spoiltBody{ReadCloser: resp.Body, ctx: r.Context(), p: p}
	}
	return resp, err
}

// invent makes an answer of the bytes.
func (p planned) invent(r *http.Request) *http.Response {
	header := http.Header{}
	if p.mediaType != "" {
		header.Set("Content-Type", p.mediaType)
	}
	if p.retryAfter != "" {
		header.Set("Retry-After", p.retryAfter)
	}
	return &http.Response{
		Status: http.StatusText(p.status), StatusCode: p.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: -1, Request: r, Body: &inventedBody{ctx: r.Context(), p: p},
	}
}

// wait lets time pass, below 0 until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	var over <-chan time.Time
	if d >= 0 {
		over = time.After(d)
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inventedBody is read as planned.
type inventedBody struct {
	ctx context.Context
	p   planned
}

func (b *inventedBody) Read(to []byte) (int, error) {
	for len(b.p.pieces) > 0 {
		first := &b.p.pieces[0]
		if err := wait(b.ctx, first.pause); err != nil {
			return 0, err
		}
		first.pause = 0
		if n := copy(to, first.data); n > 0 {
			first.data = first.data[n:]
			return n, nil
		}
		if len(to) == 0 {
			return 0, nil
		}
		b.p.pieces = b.p.pieces[1:]
	}
	return 0, ending(b.ctx, b.p.how)
}

func (b *inventedBody) Close() error { return nil }

// ending is how a body ends.
func ending(ctx context.Context, how int) error {
	switch how {
	case cut:
		return io.ErrUnexpectedEOF
	case silent:
		return wait(ctx, -1)
	default:
		return io.EOF
	}
}

// spoiltBody is a true body in which something happens after a number of bytes.
type spoiltBody struct {
	io.ReadCloser
	ctx  context.Context
	p    planned
	read int
	done bool
}

func (b *spoiltBody) Read(to []byte) (int, error) {
	if b.done {
		return b.ReadCloser.Read(to)
	}
	if left := b.p.at - b.read; left > 0 {
		n, err := b.ReadCloser.Read(to[:min(len(to), left)])
		b.read += n
		return n, err
	}
	switch b.p.how {
	case flipped:
		n, err := b.ReadCloser.Read(to[:min(len(to), 1)])
		for i := range to[:n] {
			to[i] ^= b.p.mask
			b.done = true
		}
		return n, err
	case paused:
		if err := wait(b.ctx, b.p.pause); err != nil {
			return 0, err
		}
		b.done = true
		return b.ReadCloser.Read(to)
	default:
		return 0, ending(b.ctx, b.p.how)
	}
}

// inAnswer writes bytes that [answers] reads as an invented answer of one piece.
func inAnswer(status, mediaType, how int, body []byte) []byte {
	b := []byte{invented, byte(slices.Index(statuses, status)), byte(mediaType), 0, 1, 0}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(body)))
	return append(append(b, body...), byte(how))
}

// answerSeeds are the seeds of the fuzzer: each kind of answer, lists and frames that are almost
// true, in both encodings.
func answerSeeds() [][]byte {
	phantom := object("phantom", "7")
	phantom.TypeMeta = metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
	phantom.UID, phantom.ResourceVersion = "of-nothing", "6"
	marked := phantom.DeepCopy()
	marked.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	marked.ResourceVersion = "9"
	future := phantom.DeepCopy()
	future.ResourceVersion = "99999999999999999999999999"
	expired := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired,
	}
	const listJSON = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"6",` +
		`"continue":"more"},"items":[{"metadata":{"namespace":"default","name":"phantom",` +
		`"uid":"x","resourceVersion":"5","labels":{"n":"1"}}}]}`
	var seeds [][]byte
	seed := func(setting byte, answers ...[]byte) {
		seeds = append(seeds, append([]byte{setting}, bytes.Join(answers, nil)...))
	}
	for setting := range byte(3) {
		isProtobuf := setting != 1
		stream := map[bool]int{true: 2, false: 3}[isProtobuf]
		events := func(objects ...runtime.Object) []byte {
			var b []byte
			for i, obj := range objects {
				b = append(b, frame(isProtobuf, []string{"ADDED", "MODIFIED", "BOOKMARK", "DELETED"}[i%4], obj)...)
			}
			return b
		}
		seed(setting, inAnswer(200, stream, silent, events(phantom, phantom, marked, phantom)),
			inAnswer(200, stream, cut, events(phantom)))
		seed(setting, inAnswer(200, stream, silent, events(phantom)),
			inAnswer(200, 0, silent, []byte(listJSON[:80])))
		seed(setting, inAnswer(200, stream, inOrder, events(phantom, phantom, marked)),
			inAnswer(200, stream, silent, events(future)))
		seed(setting|8, inAnswer(200, 0, inOrder, []byte(listJSON)), []byte{mute}, []byte{broken})
		seed(setting, inAnswer(200, stream, inOrder, frame(isProtobuf, "ERROR", expired)))
		seed(setting|8, []byte{mute, mute, mute}, inAnswer(410, 0, inOrder, nil))
		seed(setting, []byte{spoilt, silent, 90, 0, 0, 0, spoilt, cut, 40, 1, 0, 0},
			[]byte{spoilt, flipped, 70, 0, 3, 0, spoilt, paused, 9, 0, 0, 5, changing, late, 4})
		seed(setting|24, []byte{honestly, spoilt, inOrder, 200, 0, 0, 0, changing},
			[]byte{spoilt, flipped, 30, 0, 9, 0, late, 3, broken, changing, mute})
	}
	seed(8, []byte{invented, 14, 0, 5, 0, 0}, []byte{invented, 16, 4, 6, 1, 0, 3, 0},
		[]byte("<a>"), []byte{0})
	return seeds
}

// frame encodes a watch event of a config map or a Status.
func frame(protobuf bool, eventType string, obj runtime.Object) []byte {
	encoded := func(raw []byte, err error) []byte {
		if err != nil {
			panic(err)
		}
		return raw
	}
	if !protobuf {
		raw := encoded(json.Marshal(obj))
		event := metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: raw}}
		return append(encoded(json.Marshal(event)), '\n')
	}
	kind := "ConfigMap"
	if _, ok := obj.(*metav1.Status); ok {
		kind = "Status"
	}
	unknown := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind},
		Raw:      encoded(obj.(interface{ Marshal() ([]byte, error) }).Marshal()),
	}
	raw := append([]byte("k8s\x00"), encoded(unknown.Marshal())...)
	event := metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: raw}}
	message := encoded(event.Marshal())
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}
