package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/decode/wire"
	"github.com/tidings-go/tidings/internal/engine/tape"
)

// The tests of this file check the limits in SECURITY.md.

// TestDefaultLimits holds the numbers in the page.
func TestDefaultLimits(t *testing.T) {
	o := NewTyped(nil, pods, newPod, RESTOptions{}).options
	if o.MaxFrameBytes != 32<<20 || int64(o.MaxListBytes) != min(2<<30, math.MaxInt/4+1) || maxStatusBytes != 1<<20 || maxBatch != 256 {
		t.Errorf("limits %+v, status %d, batch %d", o, maxStatusBytes, maxBatch)
	}
}

// nested returns JSON that is so many levels deep.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
}

// TestNestingIsLimited reads objects of 20,000 levels, twice the limit. FuzzList and
// FuzzStream have such objects in lists and events.
func TestNestingIsLimited(t *testing.T) {
	const depth = 20_000
	podWith := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":` + nested(depth) + "}"
	typed := newTypedDecoder(corev1.SchemeGroupVersion.WithKind("Pod"), newPod, new(dedup.Table), ShareAll)
	maps := newDynamicDecoder(corev1.SchemeGroupVersion.WithKind("Pod"), new(dedup.Table), ShareAll)
	groups := strings.Repeat("\x0b", depth) + strings.Repeat("\x0c", depth) // of protobuf, in field 1
	for name, decode := range map[string]func() error{
		"typed object":   func() error { _, err := typed.json([]byte(podWith), schema.GroupVersionKind{}); return err },
		"object in maps": func() error { _, err := maps.json([]byte(podWith), schema.GroupVersionKind{}); return err },
		"groups in a protobuf list": func() error {
			_, err := wholePage(t, NewTyped(nil, pods, newPod, RESTOptions{}), protobufType, []byte(listOf(t, groups)))
			return err
		},
		"groups in a protobuf event": func() error {
			_, err := (&restStream[*corev1.Pod]{decoder: typed, form: tape.Protobuf}).decode([]byte(groups))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := decode(); !errors.Is(err, ErrMalformed) {
				t.Errorf("%.100v, want one that is %v", err, ErrMalformed)
			}
		})
	}
	if _, err := maps.json([]byte(strings.Replace(podWith, nested(depth), nested(depth/4), 1)), schema.GroupVersionKind{}); err != nil {
		t.Errorf("a quarter of the depth: %v", err)
	}
}

// tree is an object that contains itself, and whose Unmarshal must not be reached.
type tree struct {
	metav1.TypeMeta
	metav1.ObjectMeta `protobuf:"bytes,1,opt,name=metadata"`
	Left              *tree `protobuf:"bytes,2,opt,name=left"`
}

func (t *tree) DeepCopyObject() k8sruntime.Object { return t }
func (t *tree) Unmarshal([]byte) error            { panic("the stack would be exhausted") }

// TestNestingInProtobufIsLimited reads objects that are nested 1.5 million deep.
func TestNestingInProtobufIsLimited(t *testing.T) {
	encoded := make([]byte, 12_000_000) // from the back
	at := len(encoded)
	for range 1_500_000 {
		head := binary.AppendUvarint([]byte{2<<3 | wire.BytesType}, uint64(len(encoded)-at))
		at -= copy(encoded[at-len(head):], head)
	}
	deep := string(encoded[at:])
	inEnvelope := func(kind, content string) string {
		return string(protobufMagic) + field(1, field(1, "example.com/v1")+field(2, kind)) + field(2, content)
	}
	resource := Resource{Group: "example.com", Version: "v1", Name: "trees", Kind: "Tree"}
	of := func(body string) *REST[*tree] {
		return NewTyped(serve(t, answerWith(200, protobufType, body)), resource, func() *tree { return new(tree) }, RESTOptions{})
	}
	_, err := of(inEnvelope("TreeList", field(listItems, deep))).List(t.Context(), ListOptions{})
	if !errors.Is(err, ErrMalformed) || !errors.Is(err, dedup.ErrNesting) {
		t.Errorf("a list: %v", err)
	}
	frame := field(watchEventType, "ADDED") + field(watchEventObject, field(rawExtensionRaw, inEnvelope("Tree", deep)))
	stream, err := of(string(delimited(frame))).Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close() //nolint:errcheck // the body is the server's
	if _, err = stream.Next(); !errors.Is(err, ErrMalformed) || !errors.Is(err, dedup.ErrNesting) {
		t.Errorf("a watch: %v", err)
	}
}

// endless is a body without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

// TestEndlessAnswers reads no more of a body than its limit, or the buffer after it.
func TestEndlessAnswers(t *testing.T) {
	for name, read := range map[string]func(body io.Reader) (refused bool, err error){
		"list": func(body io.Reader) (bool, error) {
			_, err := readBody(&pageReader{body: body, limit: 1 << 20})
			return errors.Is(err, ErrFrameTooLarge), err
		},
		"another media type": func(body io.Reader) (bool, error) {
			s := NewTyped(nil, pods, newPod, RESTOptions{Transport: Transport{MaxListBytes: 1 << 20}})
			_, err := s.readPage(t.Context(), answerOf(200, "text/html", body), ListOptions{})
			return errors.Is(err, errForeign), err
		},
		"frame": func(body io.Reader) (bool, error) {
			_, err := newFrames(io.MultiReader(strings.NewReader("{"), body), objects(), 1<<20).next(true)
			return errors.Is(err, ErrFrameTooLarge), err
		},
		"refusal": func(body io.Reader) (bool, error) {
			resp := &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(body)}
			err := statusError(resp, request{op: "list", resource: "pods"})
			return apierrors.IsServiceUnavailable(err), err
		},
	} {
		body := &endless{}
		most := 2 << 20
		if name == "refusal" {
			most = maxStatusBytes
		}
		if refused, err := read(body); !refused || body.read > most {
			t.Errorf("%s: %v after %d bytes", name, err, body.read)
		}
	}
}

// TestErrorsShowNoContent guards summary: a part of an object does not get into an error.
func TestErrorsShowNoContent(t *testing.T) {
	for _, b := range []string{"", "s3cret", ` {"data":"s3cret"}`, "k8s\x00s3cret"} {
		if got := summary([]byte(b)); got != fmt.Sprintf("%d bytes", len(b)) {
			t.Errorf("%q is shown as %s", b, got)
		}
	}
	for b, want := range map[string]string{" <html>s3cret": "13 bytes of markup", "HTTP/1.1 200 s3cret": "19 bytes that begin like another HTTP answer"} {
		if got := summary([]byte(b)); !strings.HasPrefix(got, want) || strings.Contains(got, "s3cret") {
			t.Errorf("%q is shown as %s", b, got)
		}
	}
}

// TestRetryAfter keeps the wait that answers ask for, up to the largest that a Status can hold.
func TestRetryAfter(t *testing.T) {
	for seconds, want := range map[string]time.Duration{
		"17": 17 * time.Second, "3000000000": math.MaxInt32 * time.Second,
		"4294967297": math.MaxInt32 * time.Second, "99999999999999999999": math.MaxInt32 * time.Second,
		"-4294967295": 0, "-99999999999999999999": 0, "soon": 0,
	} {
		for _, body := range []string{`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`, "<html>"} {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", seconds)
				answerWith(503, jsonType, body)(w, r)
			})
			_, err := NewTyped(client, pods, newPod, RESTOptions{}).List(t.Context(), ListOptions{})
			if wait, ok := RetryAfter(err); ok != (want > 0) || wait != want {
				t.Errorf("%s seconds beside %.6s: RetryAfter is %v, %v", seconds, body, wait, ok)
			}
		}
	}
}
