package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// listOf puts an encoded list of pods into its envelope.
func listOf(t testing.TB, content string) string {
	return string(envelopeOf(t, "v1", "PodList", encoded(content)))
}

// podList encodes a list of so many pods, with metadata.
func podList(t testing.TB, n int) string {
	t.Helper()
	remaining := int64(3)
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "next", RemainingItemCount: &remaining}}
	for i := range n {
		list.Items = append(list.Items, *benchPod(i))
	}
	return string(marshal(t, list))
}

// bodies are lists in all forms that are understood.
func bodies(t testing.TB) map[string]string {
	list := podList(t, 3)
	usual := listOf(t, list)
	_, kindEnd := wire.Span([]byte(usual), len(protobufMagic)+1)
	kind := usual[len(protobufMagic):kindEnd]
	raw := usual[kindEnd : len(usual)-len("\x1a\x00\x22\x00")]
	magic := string(protobufMagic)
	if magic+kind+raw+"\x1a\x00\x22\x00" != usual {
		t.Fatalf("the list was not taken apart well: %x", usual)
	}
	return map[string]string{
		"usual":                      usual,
		"many":                       listOf(t, podList(t, maxBatch+1)),
		"empty":                      listOf(t, ""),
		"no content":                 magic + kind,
		"content before the kind":    magic + raw + kind,
		"kind twice":                 magic + kind + kind + raw,
		"unknown field first":        magic + "\x4a\x01x" + kind + raw,
		"unknown field last":         usual + "\x4a\x01x\x28\x05",
		"unknown field, a long tag":  listOf(t, "\x82\x01\x01x"+list) + "\x82\x01\x01x",
		"unknown fields in the list": listOf(t, "\x4a\x01x"+list+"\x53\x50\x05\x54"),
		"metadata twice":             listOf(t, list+"\n\x03\x12\x0110"[:5]),
		"empty item":                 listOf(t, list+"\x12\x00"),
	}
}

// readers bring a body in pieces.
var readers = map[string]func(io.Reader) io.Reader{
	"whole":        func(r io.Reader) io.Reader { return r },
	"byte by byte": iotest.OneByteReader,
	"half":         iotest.HalfReader,
	"data and EOF": iotest.DataErrReader,
}

// TestListThatCannotBeUnderstood is malformed, however it arrives.
func TestListThatCannotBeUnderstood(t *testing.T) {
	s := NewTyped(nil, pods, newPod, RESTOptions{})
	usual := bodies(t)["usual"]
	for name, body := range map[string]string{
		"nothing":               "",
		"not even the magic":    "k8",
		"another beginning":     "<html>",
		"twice":                 usual + usual[len(protobufMagic):],
		"content twice":         usual + "\x12\x00",
		"end of a group":        listOf(t, podList(t, 1)+"\x0c"),
		"item as a number":      listOf(t, podList(t, 1)+"\x10\x01"),
		"item that is too long": listOf(t, podList(t, 1)+"\x12\x05abc"),
		"metadata is malformed": listOf(t, "\x0a\x01\x12"+podList(t, 1)),
		"shardInfo is a number": listOf(t, field(1, field(5, "\x08\x01"))+podList(t, 1)),
		"item is malformed":     listOf(t, podList(t, 1)+"\x12\x02\x0a\x05"),
		"trailer is malformed":  usual + "\x1b",
		"trailer is a number":   usual + "\x20\x01",
		"kind is malformed": string(protobufMagic) +
			field(1, field(1, "v1")+field(2, "PodList")+"\x0c"),
		"endless number": listOf(t, strings.Repeat("\xff", 40)),
	} {
		for how, reader := range readers {
			_, err := s.readProtobufPage(s.pageReader(t.Context(), reader(strings.NewReader(body)), nil), nil)
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%s, %s: %v, want %v", name, how, err, ErrMalformed)
			}
		}
	}
}

// TestListThatIsCutAnywhere has an error, but after its kind and after its content.
func TestListThatIsCutAnywhere(t *testing.T) {
	s := NewTyped(nil, pods, newPod, RESTOptions{})
	usual := listOf(t, podList(t, 1))
	_, kindEnd := wire.Span([]byte(usual), len(protobufMagic)+1)
	whole := []int{kindEnd, len(usual) - len("\x1a\x00\x22\x00"), len(usual) - len("\x22\x00")}
	for n := range len(usual) {
		_, err := wholePage(t, s, protobufType, []byte(usual[:n]))
		if (err == nil) != slices.Contains(whole, n) {
			t.Errorf("cut after %d of %d bytes: %v", n, len(usual), err)
		}
		checkVerdict(t, err)
	}
	// A part of the kind may look like whole fields, such as a group that ends.
	part := protobufMagic[:len(protobufMagic):len(protobufMagic)]
	if _, n, _, err := new(protobufList).split(append(part, "\x0a\x14"...)); n != len(part) || err != nil {
		t.Errorf("%d bytes of a part of the kind are taken, %v", n, err)
	}
	begun := protobufList{opened: true, left: 1000}
	if _, _, _, err := begun.split([]byte("\x0c")); !errors.Is(err, ErrMalformed) {
		t.Errorf("before the rest of a malformed list: %v, want %v", err, ErrMalformed)
	}
	again := protobufList{opened: true, listed: true}
	if _, _, _, err := again.split([]byte("\x12\x00")); err != errTwice {
		t.Errorf("before the second content: %v, want %v", err, errTwice)
	}
	if n := announced([]byte("\x09\x7f")); n != 0 {
		t.Errorf("a number of 64 bits announces %d bytes", n)
	}
}

// comesAgain reports whether kind or content follow the content.
func comesAgain(body []byte) bool {
	f := fields{rest: bytes.TrimPrefix(body, protobufMagic), known: unknownFields}
	contents, again := 0, false
	for f.next() {
		again = again || contents > 0 && f.field <= unknownRaw
		if f.field == unknownRaw {
			contents++
		}
	}
	return again
}

// TestListIsLimited reads no more than the limit, whatever the body announces.
func TestListIsLimited(t *testing.T) {
	begin := string(protobufMagic) + field(1, field(1, "v1")+field(2, "PodList")) + "\x12"
	huge := string(binary.AppendUvarint(nil, 1<<40))
	for name, content := range map[string]string{
		"long list":     begin + huge,
		"long item":     begin + huge + "\x12" + string(binary.AppendUvarint(nil, 1<<39)),
		"long metadata": begin + huge + "\x0a" + string(binary.AppendUvarint(nil, 1<<39)),
		"long unknown":  begin + huge + "\x4a" + string(binary.AppendUvarint(nil, 1<<39)),
		"long trailer":  begin + "\x00\x1a" + string(binary.AppendUvarint(nil, 1<<39)),
	} {
		t.Run(name, func(t *testing.T) {
			more := &endless{}
			s := NewTyped(nil, pods, newPod, RESTOptions{Transport: Transport{MaxListBytes: 8 << 20}})
			var err error
			n, _ := allocated(func() {
				_, err = s.readProtobufPage(s.pageReader(t.Context(), io.MultiReader(strings.NewReader(content), more), nil), nil)
			})
			if err == nil || !errors.Is(err, ErrFrameTooLarge) && !errors.Is(err, ErrMalformed) {
				t.Errorf("%v, want %v", err, ErrFrameTooLarge)
			}
			if more.read > 9<<20 {
				t.Errorf("%d bytes were read", more.read)
			}
			if n > 64<<20 {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
}

// TestListIsNotInMemoryWhole lists pods of 30 MB, all of which are cached, and allocates a
// small part of that.
func TestListIsNotInMemoryWhole(t *testing.T) {
	p := withUID("a", "3")
	p.Annotations = map[string]string{"long": strings.Repeat("x", 3000)}
	raw := marshal(t, p)
	item := append(binary.AppendUvarint([]byte{2<<3 | wire.BytesType}, uint64(len(raw))), raw...)
	body := listOf(t, strings.Repeat(string(item), 10_000))
	s := NewTyped(nil, pods, newPod, RESTOptions{})
	var page Page[*corev1.Pod]
	var err error
	n, _ := allocated(func() {
		page, err = s.readProtobufPage(s.pageReader(t.Context(), strings.NewReader(body), nil), &filter{isCached: func(string, string, string) bool { return true }, identify: identify})
	})
	if err != nil || len(page.Items) != 0 {
		t.Fatalf("%d items, %v", len(page.Items), err)
	}
	if n > 4*burstBuffer {
		t.Errorf("%d bytes were allocated for a list of %d", n, len(body))
	}
}

// TestListThatBreaksOff is one whose connection was cut.
func TestListThatBreaksOff(t *testing.T) {
	body := bodies(t)["many"]
	for _, n := range []int{2, 30, len(body) / 2} {
		cut := io.MultiReader(strings.NewReader(body[:n]), iotest.ErrReader(io.ErrUnexpectedEOF))
		s := NewTyped(nil, pods, newPod, RESTOptions{})
		_, err := s.readProtobufPage(s.pageReader(t.Context(), cut, nil), nil)
		if !errors.Is(err, ErrCutFrame) || !strings.Contains(err.Error(), fmt.Sprint(n, " bytes")) {
			t.Errorf("after %d bytes: %v, want %v", n, err, ErrCutFrame)
		}
	}
}

// wrapped is the body of an answer.
type wrapped struct {
	io.Reader
	closed *bool
}

func (w *wrapped) Close() error {
	*w.closed = true
	return nil
}

// TestPageThatWasReadIsGarbage: the buffer is kept for the next page, the answer is
// closed and not kept.
func TestPageThatWasReadIsGarbage(t *testing.T) {
	body := listOf(t, podList(t, 3)) // with a continue token
	var read weak.Pointer[wrapped]
	closed := false
	config := &rest.Config{Host: "http://server", QPS: -1, Transport: roundTripFunc(func(req *http.Request) (*http.Response, error) {
		w := &wrapped{strings.NewReader(body), &closed}
		read = weak.Make(w)
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {protobufType}}, Body: w, Request: req}, nil
	})}
	client, err := NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := NewTyped(client, pods, newPod, RESTOptions{})
	if _, err := s.List(t.Context(), ListOptions{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if read.Value() != nil || !closed {
		t.Errorf("the answer is kept, or not closed: %v", closed)
	}
	runtime.KeepAlive(s)
}
