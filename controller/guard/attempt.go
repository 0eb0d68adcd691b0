package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// grace is the time for which a request may still be under way after its timeout: in the
	// network, before the server has started its timer, and in etcd afterwards.
	grace = time.Second
	// minTimeout is the least timeout that is sent. To the server, 0 is no timeout.
	minTimeout = time.Millisecond
)

// errNoAnswer ends a request that the server has not answered in time.
var errNoAnswer = fmt.Errorf("guard: the server did not answer within the timeout of the write: %w",
	context.DeadlineExceeded)

// attempt is one HTTP request that writes, with a call, a term or both.
type attempt struct {
	operation
	guard   *Guard
	call    *Call         // nil: the outcome is not recorded
	term    Term          // nil: the write is not fenced
	request *http.Request // first as the client gave it, then as it is sent

	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // ends the attempt
	leave  func() bool // ends the wait for the end of the term; nil if there is nothing to end
	landed atomic.Bool // the answer was read, or will not come
	// looked is set when net/http looks for a connection, and connected when it has got one.
	looked, connected atomic.Bool

	// The mutex of the call guards these.
	write   Write
	void    bool // the server has not applied it
	decided bool // the outcome is recorded
}

// begin records that the request will be sent, and limits its time. It returns an error if the
// call has ended.
func (a *attempt) begin() error {
	now, timeout := time.Now(), a.timeout()
	life := timeout + grace
	if a.term != nil {
		left := a.term.Remaining()
		timeout, life = min(timeout, left), min(life, left)
	}
	timeout = max(timeout.Truncate(minTimeout), minTimeout)
	a.write = Write{
		Resource: a.resource, Namespace: a.namespace, Name: a.name, Sent: now,
		Unknown: true, NotBefore: now.Add(timeout + grace),
	}
	if a.call != nil && !a.call.add(a) {
		a.guard.count(&a.guard.stats.Late)
		return a.refusal(ErrLate)
	}
	a.countSent()
	a.ctx, a.cancel = context.WithCancelCause(a.request.Context())
	a.request = withTimeout(a.request, httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{
		GetConn: func(string) { a.looked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { a.connected.Store(true) },
	}), timeout)
	a.timer = time.AfterFunc(life, a.overdue)
	a.watch()
	return nil
}

func (a *attempt) countSent() {
	g := a.guard
	g.count(&g.stats.Sent)
	switch {
	case a.call != nil:
	case a.isEvent():
		g.count(&g.stats.Events)
	default:
		g.count(&g.stats.Unattributed)
	}
}

// watch makes the end of the term, if there is one, end the request.
func (a *attempt) watch() {
	if a.term == nil {
		return
	}
	if t, ok := a.term.(interface{ AfterFunc(func()) func() bool }); ok {
		a.leave = t.AfterFunc(a.interrupt)
		return
	}
	go func() {
		select {
		case <-a.ctx.Done():
		case <-a.term.Done():
			a.interrupt()
		}
	}()
}

func (a *attempt) overdue() {
	if a.isClosed() {
		a.interrupt()
	} else {
		a.expire(errNoAnswer)
	}
}

// isClosed reports whether there is a term, and it is closed.
func (a *attempt) isClosed() bool {
	return a.term != nil && (a.term.Err() != nil || a.term.Remaining() < minTimeout)
}

// interrupt ends a request under way whose term is closed.
func (a *attempt) interrupt() {
	if a.landed.Swap(true) {
		return
	}
	interrupted := a.refusal(ErrFenced)
	interrupted.Sent = true
	a.expire(interrupted)
	a.guard.count(&a.guard.stats.Interrupted)
	a.guard.open.abort()
}

// expire ends the request before its answer has been read. The outcome stays unknown.
func (a *attempt) expire(cause error) {
	a.cancel(cause)
	a.lost()
}

// land ends the waits for the request.
func (a *attempt) land() {
	a.landed.Store(true)
	a.timer.Stop()
	if a.leave != nil {
		a.leave()
	}
	a.cancel(nil)
}

// reason returns the cause with which the guard has ended the request, or err if it has not.
// HTTP/2 reports only that a context was canceled.
func (a *attempt) reason(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	cause := context.Cause(a.ctx)
	if _, ours := errors.AsType[*Error](cause); ours || cause == errNoAnswer {
		return cause
	}
	return err
}

// failed records that there was no answer, and returns the reason.
func (a *attempt) failed(err error) error {
	defer a.land()
	of, ok := errors.AsType[*net.OpError](err)
	isDial := ok && of.Op == "dial" // all that the transport of another package tells
	if !a.connected.Load() && (a.looked.Load() || isDial) {
		a.avoid() // nothing was sent
	} else {
		a.broken()
	}
	return a.reason(err)
}

// broken records that the answer does not come, or not to its end. The call's context may have
// ended with the term.
func (a *attempt) broken() {
	if a.isClosed() {
		a.interrupt()
	}
	a.lost()
}

// answered makes the guard read the body of an answer as it passes.
func (a *attempt) answered(resp *http.Response) {
	body := &answerBody{ReadCloser: resp.Body, attempt: a, code: resp.StatusCode}
	resp.Body = body
	if a.call != nil {
		body.scanner = scannerFor(resp.Header)
	}
}

// concluded records the outcome that an answer shows. A refusal counts if it is a Status of the API
// server. After the page of a proxy the outcome is unknown: with a 4xx nobody works on the write
// any more, with a 5xx the server still may.
func (a *attempt) concluded(code int, got answer) {
	isError := code >= http.StatusInternalServerError
	switch {
	case code/100 == 2:
		a.applied(got)
	case code/100 == 3: // a redirect
		a.avoid()
	case isError && !got.status, code == http.StatusBadGateway, code == http.StatusGatewayTimeout:
		a.lost()
	case isError, !got.status:
		a.decide(func(w *Write) { w.Name, w.NotBefore = a.objectName(), time.Now().Add(grace) })
	case code == http.StatusConflict:
		a.conflicted()
	default:
		a.avoid()
	}
}

// decide records the outcome of the attempt, once.
func (a *attempt) decide(outcome func(w *Write)) {
	c := a.call
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.decided {
		return
	}
	a.decided = true
	outcome(&a.write)
	switch {
	case a.void:
	case a.write.Unknown:
		a.guard.count(&a.guard.stats.Unknown)
	case a.write.Conflict:
		a.guard.count(&a.guard.stats.Conflicts)
	}
	c.pending--
	c.checkDoneLocked()
}

// avoid records that the server has not applied the write.
func (a *attempt) avoid() { a.decide(func(*Write) { a.void = true }) }

// lost records that there was no answer of the server. The outcome stays unknown.
func (a *attempt) lost() { a.decide(func(w *Write) { w.Name = a.objectName() }) }

// objectName returns the name of the object, which is in the body of a create.
func (a *attempt) objectName() string {
	if a.verb != "create" || a.name != "" {
		return a.name
	}
	return metadataOf(a.request).name
}

// conflicted records that the server has refused a write, as the object has another version.
func (a *attempt) conflicted() {
	// An apply without a version conflicts with another manager of the fields. A create without a
	// name was given one that is taken. A newer version helps neither.
	sent := metadataOf(a.request)
	version, uid := sent.version, types.UID(sent.uid)
	isApply := strings.HasPrefix(a.request.Header.Get("Content-Type"), "application/apply-patch")
	if p := deleteOptionsOf(a.request).Preconditions; p != nil {
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
		if p.UID != nil {
			uid = *p.UID
		}
	}
	a.decide(func(w *Write) {
		w.Conflict, w.Unknown, w.NotBefore = true, false, time.Time{}
		w.Name, w.Version, w.UID = a.objectName(), version, uid
		a.void = isApply && version == "" && uid == "" || w.Name == ""
	})
}

// applied records the answer to a successful write. The server has ended the request.
func (a *attempt) applied(got answer) {
	a.decide(func(w *Write) {
		w.NotBefore = time.Now()
		if !got.whole || a.verb == "deletecollection" {
			w.Name = a.objectName()
			return
		}
		isDelete := a.verb == "delete" && a.subresource == ""
		w.UID = types.UID(got.uid)
		if got.status {
			w.Gone = isDelete && got.uid != ""
			w.Unknown, w.Name = !w.Gone, a.objectName()
		} else {
			w.Name, w.Version = cmp.Or(got.name, w.Name), got.version
			w.Gone = (got.deleted || isDelete) && !got.finalizers && !got.grace
			// The finalizers of a namespace are in its spec, which is not read.
			isNamespace := w.Resource == schema.GroupResource{Resource: "namespaces"}
			w.Unknown = w.Version == "" || w.UID == "" || w.Gone && isNamespace
			w.Gone = w.Gone && !isNamespace
		}
		if !w.Unknown {
			w.NotBefore = time.Time{}
		}
	})
}

// answerBody passes the body of an answer on, and reads it as it passes.
type answerBody struct {
	io.ReadCloser
	attempt *attempt
	code    int

	mu      sync.Mutex // guards scanner: Close may be called during Read
	scanner scanner
}

// Read reads the next part.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	b.scanner.scan(p[:n])
	b.mu.Unlock()
	if err != nil {
		b.end(err)
	}
	return n, b.attempt.reason(err)
}

// Close closes the body.
func (b *answerBody) Close() error {
	b.end(nil)
	return b.ReadCloser.Close()
}

// end records the outcome that the body shows. The first outcome of an attempt counts.
func (b *answerBody) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempt.concluded(b.code, b.scanner.result())
	if err != nil && err != io.EOF {
		b.attempt.broken()
	}
	b.attempt.land()
}
