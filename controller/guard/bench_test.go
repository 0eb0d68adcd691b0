package guard

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// atOnce is a transport that answers at once.
type atOnce struct {
	header http.Header
	body   []byte
}

func (a *atOnce) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// contextTerm is a term with AfterFunc, like that of an election.
type contextTerm struct {
	*testTerm
	ctx context.Context
}

func (t contextTerm) AfterFunc(f func()) func() bool { return context.AfterFunc(t.ctx, f) }

// BenchmarkWrite measures an update with the guard, and without it. The answer is a config map
// of 1.5 KB, or of 1 MB.
func BenchmarkWrite(b *testing.B) {
	small := samples(1)["plain"].(*corev1.ConfigMap)
	small.Data = map[string]string{"key": strings.Repeat("x", 1200)}
	large := small.DeepCopy()
	large.Data["key"] = strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name      string
		obj       *corev1.ConfigMap
		mediaType string
		guarded   bool
		term      bool
	}{
		{"unguarded", small, runtime.ContentTypeJSON, false, false},
		{"JSON", small, runtime.ContentTypeJSON, true, false},
		{"protobuf", small, runtime.ContentTypeProtobuf, true, false},
		{"CBOR", small, runtime.ContentTypeCBOR, true, false},
		{"protobuf under a term", small, runtime.ContentTypeProtobuf, true, true},
		{"unguarded, large", large, runtime.ContentTypeJSON, false, false},
		{"JSON, large", large, runtime.ContentTypeJSON, true, false},
		{"protobuf, large", large, runtime.ContentTypeProtobuf, true, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			g, err := New(&rest.Config{Host: "https://a"}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			body := encoded(b, c.mediaType, c.obj)
			var rt http.RoundTripper = &atOnce{http.Header{"Content-Type": {c.mediaType}}, body}
			if c.guarded {
				rt = &transport{g, rt}
			}
			var term Term
			if c.term {
				term = contextTerm{newTerm(time.Hour), b.Context()}
			}
			const address = "https://a/api/v1/namespaces/default/configmaps/a"
			buffer := make([]byte, 32<<10)
			b.ReportAllocs()
			for b.Loop() {
				ctx, call := g.Begin(b.Context(), term)
				req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(body[:100]))
				if err != nil {
					b.Fatal(err)
				}
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = resp.Body.Read(buffer)
				}
				resp.Body.Close()
				if writes := call.End(); c.guarded && writes[0].Version != "12" {
					b.Fatalf("it is noted as %+v", writes)
				}
			}
		})
	}
}
