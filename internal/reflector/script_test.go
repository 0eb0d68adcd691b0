package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// object is a state of something in the scripted collection.
type object struct{ name, version, note string }

func item(name, version string) source.Item[object] {
	return source.Item[object]{Key: name, Version: version, UID: "uid-" + name, Object: object{name: name, version: version}}
}

func event(t source.EventType, name, version string) source.Event[object] {
	return source.Event[object]{Type: t, Item: item(name, version)}
}

func bookmark(t source.EventType, version string) source.Event[object] {
	return source.Event[object]{Type: t, Item: source.Item[object]{Version: version}}
}

// answer is what the script says to one request, which must be the expected one.
type answer struct {
	expect string // "list RV limit continue" or "watch RV" or "stream"
	page   source.Page[object]
	err    error
	reads  []read          // of the stream
	hang   bool            // a list that is not answered, or not to its end
	signs  []time.Duration // between the signs of life of a list, virtual, before its answer or the silence
}

// read is what one Next of a stream gives. The last one is repeated by waiting for
// the context.
type read struct {
	after  time.Duration // virtual
	events []source.Event[object]
	err    error
}

// script is a source that answers one request after the other and notes what was
// asked.
type script struct {
	t       *testing.T
	asks    bool // it leaves out what is held, as a source that reads what is encoded does
	mu      sync.Mutex
	answers []answer
	asked   []string
	heldOf  []string // what it was told is held
}

// leaveOut notes and leaves out the items that are held.
func leaveOut[E any](s *script, held source.IsCached, all []E, itemOf func(E) (source.Item[object], bool)) (rest []E) {
	for _, e := range all {
		i, may := itemOf(e)
		if may && held != nil && held(i.Key, i.Version, i.UID) {
			s.mu.Lock()
			s.heldOf = append(s.heldOf, i.Key+"@"+i.Version)
			s.mu.Unlock()
			continue
		}
		rest = append(rest, e)
	}
	return rest
}

func (s *script) next(request string) (answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func (s *script) List(ctx context.Context, o source.ListOptions) (source.Page[object], error) {
	a, ok := s.next(fmt.Sprintf("list %q %d %q", o.Version, o.Limit, o.Continue))
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
		a.page.Items = leaveOut(s, o.IsCached, a.page.Items, func(i source.Item[object]) (source.Item[object], bool) { return i, true })
	}
	return a.page, a.err
}

func (s *script) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[object], error) {
	request := "watch " + o.Version
	if o.SendInitialEvents {
		request = "stream" + o.Version
	}
	a, ok := s.next(request)
	if ok && a.err != nil {
		return nil, a.err
	}
	stream := &scriptedStream{ctx: ctx, reads: a.reads}
	if s.asks && o.SendInitialEvents {
		stream.asks, stream.held = s, o.IsCached
	}
	return stream, nil
}

type scriptedStream struct {
	ctx   context.Context
	reads []read
	asks  *script
	held  source.IsCached
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
	if s.asks != nil {
		if r.events = leaveOut(s.asks, s.held, r.events, func(e source.Event[object]) (source.Item[object], bool) { return e.Item, e.Type == source.Added }); len(r.events) == 0 && r.err == nil {
			return s.Next()
		}
	}
	return r.events, r.err
}

func (s *scriptedStream) Close() error { return nil }

// journal is a queue that writes down what it is given.
type journal struct {
	mu      sync.Mutex
	entries []string
	refuse  error         // what the next Replace answers
	older   bool          // it has reached a newer version than any list
	full    time.Duration // how long a Push waits for room
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, fmt.Sprintf(format, args...))
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.entries...)
}

func (j *journal) Push(_ context.Context, _, version string, changes []delta.Event[object]) error {
	var text strings.Builder
	for _, c := range changes {
		text.WriteString(fmt.Sprintf(" %v %s@%s%s", c.Type, c.Key, c.Version, c.Object.note))
	}
	j.mu.Lock()
	full := j.full
	j.mu.Unlock()
	time.Sleep(full)
	j.add("push %s:%s", version, text.String())
	return nil
}

func (j *journal) Replace(_ context.Context, _, version string, items []delta.Item[object], o delta.ReplaceOptions) error {
	var text strings.Builder
	for _, i := range items {
		text.WriteString(fmt.Sprintf(" %s@%s%s", i.Key, i.Version, i.Object.note))
	}
	stay := ""
	if len(o.Stays) > 0 {
		stay = ", " + strings.Join(o.Stays, " ") + " stay"
	}
	j.add("replace %s (new history %v%s):%s", version, o.NewHistory, stay, text.String())
	err := j.refuse
	j.refuse = nil
	if j.older && !o.NewHistory {
		err = delta.ErrOlder
	}
	return err
}

func (j *journal) Bookmark(_ context.Context, _, version string) error {
	j.add("bookmark %s", version)
	return nil
}

// status is an error as a server answers it.
func status(code int32, reason metav1.StatusReason) error {
	return &source.Error{Op: "watch", Resource: "things.v1", Phase: source.Answered, Err: &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason),
	}}}
}

var (
	errExpired   = status(410, metav1.StatusReasonExpired)
	errForbidden = status(403, metav1.StatusReasonForbidden)
	errNotFound  = status(404, metav1.StatusReasonNotFound)
	errInternal  = status(500, metav1.StatusReasonInternalError)
	errDecoding  = &source.Error{Op: "watch", Resource: "things.v1", Phase: source.Decoding, Err: source.ErrMalformed}
	errRefused   = &source.Error{Op: "watch", Resource: "things.v1", Phase: source.Connecting, Err: errors.New("connection refused")}
	errCut       = &source.Error{Op: "watch", Resource: "things.v1", Phase: source.Streaming, Err: errors.New("connection reset")}
)

func errTooMany(seconds int32) error {
	return &source.Error{Op: "list", Resource: "things.v1", Phase: source.Answered, Err: &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests,
		Details: &metav1.StatusDetails{RetryAfterSeconds: seconds},
	}}}
}

// run runs a reflector over a script until nothing more happens and check has been
// called, in a bubble.
func run(t *testing.T, answers []answer, o Options[object], check func(r *Reflector[object], s *script, j *journal)) {
	t.Helper()
	runScript(t, &script{t: t, answers: answers}, o, check)
}

// runScript is run with a script.
func runScript(t *testing.T, s *script, o Options[object], check func(r *Reflector[object], s *script, j *journal)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		o.Name = "things.v1"
		o.Backoff.Jitter = -1
		r := New(s, j, o)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		check(r, s, j)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if state := r.Health().State; state != health.Stopped {
			t.Errorf("after Run the state is %s, want Stopped", state)
		}
	})
}

// listed is a streamed list of one object, at version 5.
func listed(then ...read) answer {
	return answer{expect: "stream", reads: append([]read{
		{events: []source.Event[object]{event(source.Added, "a", "3"), bookmark(source.InitialEventsEnd, "5")}},
	}, then...)}
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

var eof = read{err: io.EOF}
