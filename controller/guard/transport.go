package guard

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// transport is the transport through which all requests of a guard's clients pass.
type transport struct {
	guard *Guard
	next  http.RoundTripper
}

// WrappedRoundTripper returns the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request, unless it is a write that the guard refuses.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, g := req.Context(), t.guard
	if p, ok := ctx.Value(probeKey{}).(*probe); ok {
		p.guard = g
		return nil, errProbed
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(req)
	}
	op, isWrite := g.operationOf(req)
	if !isWrite && g.isServer(req.URL) {
		return t.next.RoundTrip(req)
	}
	call, _ := ctx.Value(callKey{g}).(*Call)
	a := &attempt{operation: op, guard: g, call: call, request: req}
	a.term = g.termOf(a)
	err := a.check()
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && a.call == nil && a.term == nil {
		a.countSent()
		return t.next.RoundTrip(req)
	}
	if err == nil {
		err = a.begin()
	}
	if err != nil {
		if req.Body != nil {
			req.Body.Close() //nolint:errcheck // the request is not sent
		}
		return nil, err
	}
	resp, err := t.next.RoundTrip(a.request)
	if err != nil {
		return nil, a.failed(err)
	}
	a.answered(resp)
	return resp, nil
}

// termOf returns the term of a write: of its call, of its context, or the default term. It is nil
// without a term, and for events without a call.
func (g *Guard) termOf(a *attempt) Term {
	if a.call != nil {
		return a.call.term
	}
	if a.isEvent() {
		return nil
	}
	if term, ok := a.request.Context().Value(termKey{g}).(*Term); ok {
		return *term
	}
	return g.defaultTerm()
}

// check returns the reason for which a write is not sent, or nil.
func (a *attempt) check() error {
	g := a.guard
	switch {
	case !g.isServer(a.request.URL):
		g.count(&g.stats.Refused)
		a.operation = operation{verb: strings.ToLower(a.request.Method)}
		a.resource.Resource = a.request.URL.Host + a.request.URL.Path
		return a.refusal(ErrOtherServer)
	case a.call != nil && a.call.hasEnded():
		g.count(&g.stats.Late)
		return a.refusal(ErrLate)
	case a.isClosed():
		g.count(&g.stats.Fenced)
		return a.refusal(ErrFenced)
	case a.term != nil && g.o.RequirePreconditions && !a.hasPrecondition():
		g.count(&g.stats.Refused)
		return a.refusal(ErrPrecondition)
	case g.o.Shadow != nil:
		g.count(&g.stats.Shadowed)
		g.o.Shadow(a.shadow())
		return a.refusal(ErrShadow)
	}
	return nil
}

// hasPrecondition reports whether the write names the version or the UID that it is for, or is
// neither an update nor a delete.
func (a *attempt) hasPrecondition() bool {
	switch a.verb {
	case "update":
		version := metadataOf(a.request).version
		return version != "" && version != "0"
	case "delete", "deletecollection":
		p := deleteOptionsOf(a.request).Preconditions
		return p != nil && p.UID != nil
	}
	return true
}

// shadow returns the write as it would have been sent.
func (a *attempt) shadow() ShadowWrite {
	w := ShadowWrite{
		Call: a.call.name(), Verb: a.verb, Resource: a.resourceText(),
		Namespace: a.namespace, Name: a.name,
		ContentType: a.request.Header.Get("Content-Type"),
	}
	if a.request.Body != nil && w.Resource != "secrets" {
		// Record the part that can be read.
		w.Body, _ = io.ReadAll(io.LimitReader(a.request.Body, maxShadowBody+1))
		w.Truncated = len(w.Body) > maxShadowBody
		w.Body = w.Body[:min(len(w.Body), maxShadowBody)]
	}
	return w
}

// timeout returns the least of the guard's timeout, the request's, and the time until its
// deadline.
func (a *attempt) timeout() time.Duration {
	timeout := a.guard.o.Timeout
	if strings.Contains(a.request.URL.RawQuery, "timeout=") {
		given, err := time.ParseDuration(a.request.URL.Query().Get("timeout"))
		if err == nil && given > 0 {
			timeout = min(timeout, given)
		}
	}
	if deadline, ok := a.request.Context().Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	return timeout
}

// withTimeout returns a copy of a request with a context and a timeout parameter.
func withTimeout(req *http.Request, ctx context.Context, timeout time.Duration) *http.Request {
	sent := req.WithContext(ctx)
	address := *req.URL
	switch parameter := "timeout=" + timeout.String(); {
	case address.RawQuery == "":
		address.RawQuery = parameter
	case strings.Contains(address.RawQuery, "timeout="):
		query := address.Query()
		query.Set("timeout", timeout.String())
		address.RawQuery = query.Encode()
	default:
		address.RawQuery += "&" + parameter
	}
	sent.URL = &address
	return sent
}
