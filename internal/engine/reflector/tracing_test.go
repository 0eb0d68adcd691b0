package reflector

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/tidings-go/tidings/source"
)

// spanKey is the key of the name of a span in its context.
type spanKey struct{}

// spans is a tracer that writes down the spans that have ended.
type spans struct {
	ended []string
	open  int
}

func (s *spans) Start(ctx context.Context, name string, attrs ...slog.Attr) (context.Context, source.Span) {
	s.open++
	return context.WithValue(ctx, spanKey{}, name), &scriptedSpan{s, fmt.Sprint(name, " ", attrs)}
}

// scriptedSpan is a span that ends once.
type scriptedSpan struct {
	of    *spans
	began string
}

func (s *scriptedSpan) End(err error, attrs ...slog.Attr) {
	s.of.open--
	s.of.ended = append(s.of.ended, fmt.Sprint(s.began, " ", attrs, " ", err))
	s.of = nil
}

// TestSpans expects the spans of lists and watches, each ended before Run returns.
func TestSpans(t *testing.T) {
	const (
		list  = "list things.v1 [informer=things.v1] "
		watch = "watch things.v1 "
	)
	second := `list "0" 500 "more"`
	paged := Options[object]{Transport: source.Transport{NoStreamedLists: true}}
	inNamespace := Options[object]{Partition: "a/", Transport: source.Transport{WatchTimeout: time.Second}}
	for name, test := range map[string]struct {
		scenario
		under, spans []string
	}{
		"streamed": {
			scenario{answers: []answer{listed(sends("~a@7"), eof), watched("7", sends("~a@8"), fails(errCut)), watched("8")}},
			[]string{"list things.v1", "watch things.v1", "watch things.v1"},
			[]string{
				list + "[version=5 streamed=true objects=1] <nil>",
				watch + "[version=5 informer=things.v1] [end=finished events=1] <nil>",
				watch + "[version=7 informer=things.v1] [end=broken events=1] " + errCut.Error(),
				watch + "[version=8 informer=things.v1] [end=stopped events=0] <nil>",
			},
		},
		"in pages, one of which fails": {
			scenario{o: paged, answers: []answer{page(first, "5", "+a@3", "more"), failed(second, errInternal), page(second, "5", "+b@4", ""), watched("5")}},
			[]string{"list things.v1", "list things.v1", "list things.v1", "watch things.v1"},
			[]string{
				list + "[version=5 pages=2 objects=2] <nil>",
				watch + "[version=5 informer=things.v1] [end=stopped events=0] <nil>",
			},
		},
		"stopped before a page is asked for again": {
			scenario{o: paged, pass: time.Millisecond, answers: []answer{page(first, "5", "+a@3", "more"), failed(second, errInternal)}},
			[]string{"list things.v1", "list things.v1"},
			[]string{list + "[version=5 pages=1 objects=1] context canceled"},
		},
		"a list and a watch that do not begin": {
			scenario{answers: []answer{failed("stream", errForbidden), listed(eof), failed("watch 5", errInternal), watched("5")}},
			[]string{"list things.v1", "list things.v1", "watch things.v1", "watch things.v1"},
			[]string{
				list + "[version= streamed=true objects=0] " + errForbidden.Error(),
				list + "[version=5 streamed=true objects=1] <nil>",
				watch + "[version=5 informer=things.v1] [end=finished events=0] <nil>",
				watch + "[version=5 informer=things.v1] [end=refused events=0] " + errInternal.Error(),
				watch + "[version=5 informer=things.v1] [end=stopped events=0] <nil>",
			},
		},
		"of a namespace, with a watch that outlives its timeout": {
			scenario{o: inNamespace, pass: 45 * time.Second, answers: []answer{streamed(sends("=5")), watched("5"), checked("5")}},
			[]string{"list things.v1", "watch things.v1", "check things.v1"},
			[]string{
				"list things.v1 [informer=things.v1 namespace=a] [version=5 streamed=true objects=0] <nil>",
				"watch things.v1 [version=5 informer=things.v1 namespace=a] [end=silent events=0] " + errOutlived.Error(),
				"check things.v1 [informer=things.v1 namespace=a] [version=5] <nil>",
				"watch things.v1 [version=5 informer=things.v1 namespace=a] [end=stopped events=0] <nil>",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			traced := &spans{}
			test.o.Tracer = traced
			test.check = func(t *testing.T, _ *Reflector[object], s *script, _ *journal) {
				same(t, "spans of requests", s.under, test.under...)
			}
			test.run(t)
			same(t, "spans", traced.ended, test.spans...)
			if traced.open != 0 {
				t.Errorf("%d spans have not ended", traced.open)
			}
		})
	}
}
