package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// object is a state of an object of the scripted collection.
type object struct{ name, version, note string }

// parse returns the events of a text: "+a@3" was added, "~a@4" modified, "-a@5" deleted, "*6" is
// a bookmark and "=6" the end of a streamed list.
func parse(text string) (events []source.Event[object]) {
	types := map[byte]source.EventType{
		'+': source.Added, '~': source.Modified, '-': source.Deleted, '*': source.Bookmark, '=': source.InitialEventsEnd,
	}
	for word := range strings.FieldsSeq(text) {
		e := source.Event[object]{Type: types[word[0]], Item: source.Item[object]{Version: word[1:]}}
		if name, version, isObject := strings.Cut(word[1:], "@"); isObject {
			e.Item = source.Item[object]{Key: name, Version: version, UID: "uid-" + name, Object: object{name: name, version: version}}
		}
		events = append(events, e)
	}
	return events
}

// read is the result of one Next of a stream. After the last one, Next waits for the context.
type read struct {
	after  time.Duration // virtual
	events []source.Event[object]
	err    error
}

func sends(text string) read                       { return read{events: parse(text)} }
func sendsAfter(d time.Duration, text string) read { return read{after: d, events: parse(text)} }
func fails(err error) read                         { return read{err: err} }
func failsAfter(d time.Duration, err error) read   { return read{after: d, err: err} }
func streamed(reads ...read) answer                { return answer{expect: "stream", reads: reads} }
func watched(version string, reads ...read) answer {
	return answer{expect: "watch " + version, reads: reads}
}
func failed(expect string, err error) answer { return answer{expect: expect, err: err} }
func listed(then ...read) answer             { return streamed(append([]read{sends("+a@3 =5")}, then...)...) }
func page(expect, version, items, next string) answer {
	a := answer{expect: expect, page: source.Page[object]{Version: version, Continue: next}}
	for _, e := range parse(items) {
		a.page.Items = append(a.page.Items, e.Item)
	}
	return a
}

// answer is the answer of the script to one request.
type answer struct {
	expect string // the request: "stream", "watch VERSION" or "list VERSION LIMIT TOKEN"
	page   source.Page[object]
	err    error
	reads  []read          // of the stream
	hang   bool            // a list or a watch that is not answered, or not to its end
	begins time.Duration   // how long a watch takes to begin
	signs  []time.Duration // between the signs of activity of a list, before its answer or the silence
}

const (
	first = `list "0" 500 ""`
	later = `list "" 500 ""`
	look  = `list "" 1 ""` // a check of the server's version
)

var (
	eof       = fails(io.EOF)
	listed9   = streamed(sends("=9")) // follows listed, without its object
	relisted4 = streamed(sends("+b@2 =4"))
	onePage   = page(first, "5", "+a@3", "")
)

// Entries of the queue after some of these.
const (
	replaced5 = "replace 5: a@3"
	replaced9 = "replace 9:"
	rewound4  = "replace 4, new history: b@2"
)

// checked answers a check of the server's version.
func checked(version string) answer { return page(look, version, "+other@1", "more") }

// script is a source that answers one request after the other. Requests after the last answer
// are not answered.
type script struct {
	t       *testing.T
	asks    bool // it leaves out objects that are cached or not wanted, as a source that reads encoded objects does
	mu      sync.Mutex
	answers []answer
	asked   []string
	cached  []string // the objects that it takes for cached
	keys    []string // that lists were narrowed to
	open    int      // streams
	under   []string // the span of each request, "" for none
	shards  bool     // it honours shard selectors
	probes  int      // lists of one object with a shard selector, which have no answer of their own
}

// leaveOut leaves out the items that are not wanted, and those that are cached, which it notes.
func leaveOut[E any](s *script, selects source.Selects, isCached source.IsCached, all []E, itemOf func(E) (source.Item[object], bool)) (rest []E) {
	for _, e := range all {
		i, may := itemOf(e)
		if may && selects != nil && !selects(i.UID, slot.NamespaceOf(i.Key)) {
			continue
		}
		if may && isCached != nil && isCached(i.Key, i.Version, i.UID) {
			s.mu.Lock()
			s.cached = append(s.cached, i.Key+"@"+i.Version)
			s.mu.Unlock()
			continue
		}
		rest = append(rest, e)
	}
	return rest
}

func (s *script) next(ctx context.Context, request string) (answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	span, _ := ctx.Value(spanKey{}).(string)
	s.under = append(s.under, span)
	s.asked = append(s.asked, request)
	if len(s.answers) == 0 {
		return answer{}, false
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	if a.expect != request {
		s.t.Errorf("request %d is %q, want %q", len(s.asked), request, a.expect)
	}
	return a, true
}

// note notes the key that a list is narrowed to.
func (s *script) note(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key != "" {
		s.keys = append(s.keys, key)
	}
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *script) List(ctx context.Context, o source.ListOptions) (source.Page[object], error) {
	if o.Limit == 1 && o.ShardSelector != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.probes++
		return source.Page[object]{Version: "1", Sharded: s.shards}, nil
	}
	a, ok := s.next(ctx, fmt.Sprintf("list %q %d %q", o.Version, o.Limit, o.Continue))
	s.note(o.Key)
	if o.OnActivity != nil {
		o.OnActivity()
	}
	for _, d := range a.signs {
		select {
		case <-ctx.Done():
			return source.Page[object]{}, context.Cause(ctx)
		case <-time.After(d):
			o.OnActivity()
		}
	}
	if !ok || a.hang {
		<-ctx.Done()
		return source.Page[object]{}, context.Cause(ctx)
	}
	if s.asks {
		a.page.Items = leaveOut(s, o.Selects, o.IsCached, a.page.Items, func(i source.Item[object]) (source.Item[object], bool) { return i, true })
	}
	return a.page, a.err
}

func (s *script) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[object], error) {
	request := "watch " + o.Version
	if o.SendInitialEvents {
		request = "stream" + o.Version
	}
	a, ok := s.next(ctx, request)
	if o.OnActivity != nil {
		o.OnActivity()
	}
	if a.hang {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	time.Sleep(a.begins)
	if ok && a.err != nil {
		return nil, a.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open++; s.open > 1 {
		s.t.Errorf("%q begins before the stream of before is closed", request)
	}
	stream := &scriptedStream{ctx: ctx, reads: a.reads, of: s}
	if s.asks && o.SendInitialEvents {
		stream.asks, stream.selects, stream.isCached = s, o.Selects, o.IsCached
	}
	return stream, nil
}

type scriptedStream struct {
	ctx      context.Context
	reads    []read
	of       *script // nil: of another server
	asks     *script
	selects  source.Selects
	isCached source.IsCached
}

func (s *scriptedStream) Next() ([]source.Event[object], error) {
	if len(s.reads) == 0 {
		<-s.ctx.Done()
		return nil, s.ctx.Err()
	}
	r := s.reads[0]
	s.reads = s.reads[1:]
	select {
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	case <-time.After(r.after):
	}
	if s.asks == nil {
		return r.events, r.err
	}
	r.events = leaveOut(s.asks, s.selects, s.isCached, r.events, func(e source.Event[object]) (source.Item[object], bool) {
		return e.Item, e.Type == source.Added
	})
	for i, e := range r.events {
		if e.Type <= source.Deleted && s.selects != nil && !s.selects(e.UID, slot.NamespaceOf(e.Key)) {
			r.events[i] = source.Event[object]{Type: e.Type, Item: source.Item[object]{Version: e.Version}, Unselected: true}
		}
	}
	if len(r.events) == 0 && r.err == nil {
		return s.Next()
	}
	return r.events, r.err
}

func (s *scriptedStream) Close() error {
	if s.of != nil {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
		s.of.open--
	}
	return nil
}

// journal is a queue that writes down the calls of its methods.
type journal struct {
	mu      sync.Mutex
	entries []string
	refuse  error         // what the next Replace answers
	older   bool          // it has reached a newer version than any list
	full    time.Duration // how long a Push waits for room
	closed  bool          // takes a Replace and nothing more
	during  func()        // is called by each Replace, unless it is nil
}

func (j *journal) add(entry string, describe func(text *strings.Builder)) {
	var text strings.Builder
	text.WriteString(entry)
	describe(&text)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, text.String())
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

var eventNames = map[delta.EventType]string{delta.Set: "set", delta.Delete: "delete", delta.Gone: "gone", delta.Merged: "merged"}

func (j *journal) Push(_ context.Context, _, version string, changes []delta.Event[object]) error {
	time.Sleep(j.full)
	j.add("push "+version+":", func(text *strings.Builder) {
		for _, c := range changes {
			name := eventNames[c.Type]
			if c.Unusable {
				name = "unusable"
			}
			fmt.Fprintf(text, " %s %s@%s%s", name, c.Key, c.Version, c.Object.note)
		}
	})
	if j.closed {
		return delta.ErrClosed
	}
	return nil
}

func (j *journal) Replace(_ context.Context, _, version string, items []delta.Item[object], o delta.ReplaceOptions) error {
	j.add("replace "+version, func(text *strings.Builder) {
		if o.NewHistory {
			text.WriteString(", new history")
		}
		if len(o.Stays) > 0 {
			var keys []string
			for _, u := range o.Stays {
				keys = append(keys, u.Key)
			}
			slices.Sort(keys)
			fmt.Fprintf(text, ", %s stay", strings.Join(keys, " "))
		}
		text.WriteString(":")
		for _, i := range items {
			fmt.Fprintf(text, " %s@%s%s", i.Key, i.Version, i.Object.note)
		}
	})
	if j.during != nil {
		j.during()
	}
	err := j.refuse
	j.refuse = nil
	if j.older && !o.NewHistory {
		err = delta.ErrOlder
	}
	return err
}

func (j *journal) Bookmark(_ context.Context, _, version string) error {
	j.add("bookmark "+version, func(*strings.Builder) {})
	return nil
}

// knows is an Options.Known of objects by key and version.
func knows(texts ...string) func(string) (object, string, string, bool) {
	return func(key string) (object, string, string, bool) {
		for _, text := range texts {
			if name, version, _ := strings.Cut(text, "@"); name == key {
				return object{name: name, version: version, note: " as known"}, version, "uid-" + name, true
			}
		}
		return object{}, "", "", false
	}
}

// status is an error as a server answers it.
func status(code int32, reason metav1.StatusReason) error { return statusAfter(code, reason, 0) }

func statusAfter(code int32, reason metav1.StatusReason, seconds int32) error {
	return &source.Error{Op: "watch", Resource: "things.v1", Phase: source.Answered, Err: &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason),
		Details: &metav1.StatusDetails{RetryAfterSeconds: seconds},
	}}}
}

func errTooMany(seconds int32) error {
	return statusAfter(429, metav1.StatusReasonTooManyRequests, seconds)
}

var (
	errExpired     = status(410, metav1.StatusReasonExpired)
	errForbidden   = status(403, metav1.StatusReasonForbidden)
	errNotFound    = status(404, metav1.StatusReasonNotFound)
	errInternal    = status(500, metav1.StatusReasonInternalError)
	errUnreadable  = status(500, metav1.StatusReasonStoreReadError)
	errUnavailable = status(503, metav1.StatusReasonServiceUnavailable)
	errTimeout     = status(504, metav1.StatusReasonTimeout)
	errDecoding    = &source.Error{Op: "watch", Resource: "things.v1", Phase: source.Decoding, Err: source.ErrMalformed}
	errRefused     = &source.Error{Op: "watch", Resource: "things.v1", Phase: source.Connecting, Err: errors.New("connection refused")}
	errCut         = &source.Error{Op: "watch", Resource: "things.v1", Phase: source.Streaming, Err: errors.New("connection reset")}
)
