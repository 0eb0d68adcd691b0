package cache_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
)

// step is the purpose of a request.
type step string

const (
	listStep   step = "list" // the first page of a list
	pageStep   step = "page" // a later page of a list
	streamStep step = "stream"
	watchStep  step = "watch"
)

var steps = []step{listStep, pageStep, streamStep, watchStep}

func stepOf(r *http.Request) step {
	q := r.URL.Query()
	switch {
	case q.Get("watch") == "" && q.Get("continue") == "":
		return listStep
	case q.Get("watch") == "":
		return pageStep
	case q.Get("sendInitialEvents") == "true":
		return streamStep
	default:
		return watchStep
	}
}

// answer is an answer of a server or a proxy to a request.
type answer struct {
	name string
	give func(x *exchange)
}

// exchange is a request of one of the informers, with its ResponseWriter.
type exchange struct {
	server *wireServer
	w      http.ResponseWriter
	r      *http.Request
	next   http.Handler // apisim
}

// wireScript has the answers to the requests of each kind: for each of the first requests, and
// for all later ones. nil is the answer of apisim.
type wireScript struct {
	first map[step][]*answer
	rest  map[step]*answer
	paged bool // apisim serves pages of three objects
}

// newScript makes a script. Half of the kinds of requests are not disturbed.
func newScript(random *rand.Rand) wireScript {
	s := wireScript{first: map[step][]*answer{}, rest: map[step]*answer{}, paged: random.IntN(2) == 0}
	for _, at := range steps {
		if random.IntN(2) == 0 {
			continue
		}
		for range random.IntN(6) {
			var a *answer
			if random.IntN(3) > 0 {
				a = newAnswer(random, at)
			}
			s.first[at] = append(s.first[at], a)
		}
		if random.IntN(3) == 0 {
			s.rest[at] = newAnswer(random, at)
		}
	}
	if random.IntN(3) > 0 && s.rest[streamStep] == nil && len(s.first[streamStep]) == 0 {
		s.rest[streamStep] = refused(http.StatusUnprocessableEntity, "")
	}
	return s
}

func (s wireScript) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "in pages: %t", s.paged)
	for _, at := range steps {
		fmt.Fprintf(&text, "\n  %s:", at)
		for _, a := range s.first[at] {
			fmt.Fprintf(&text, " %s,", a)
		}
		fmt.Fprintf(&text, " and then %s", s.rest[at])
	}
	return text.String()
}

func (a *answer) String() string {
	if a == nil {
		return "the truth"
	}
	return a.name
}

// lastRequest is the last request of an informer.
type lastRequest struct {
	query string
	at    time.Time
}

// clientPause is the pause of client-go's REST client before it repeats a request by itself, up
// to ten times, after a lost connection.
const clientPause = time.Second

// latency is the least time that an answer of a script takes: even requests without a pause
// between them advance virtual time.
const latency = 100 * time.Millisecond

// wireServer is an API server that answers by a script until it turns honest. Each informer
// receives the answers of the whole script.
type wireServer struct {
	api    *apisim.Server
	script wireScript
	object string        // the beginning of an object in JSON, up to its metadata
	honest chan struct{} // closed when it turns honest

	mu     sync.Mutex // guards the rest
	asked  map[string]map[step]int
	last   map[string]lastRequest // the last request of each informer
	spared map[string]int         // requests that the client made by itself, by informer
	log    []string
	leases map[string]string // versions of deletes, and the ones that the server sends
}

func (s *wireServer) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := stepOf(r)
		x := &exchange{s, &leaseWriter{w, s}, r, next}
		a := s.next(r, at)
		if q := r.URL.Query(); s.script.paged && at != streamStep && at != watchStep && q.Get("limit") != "1" {
			q.Set("limit", "3")
			q.Del("resourceVersion")
			q.Del("resourceVersionMatch")
			r.URL.RawQuery = q.Encode()
		}
		if a == nil {
			next.ServeHTTP(x.w, r)
			return
		}
		x.wait(latency)
		a.give(x)
	})
}

// next counts a request and returns its answer.
func (s *wireServer) next(r *http.Request, at step) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked[r.UserAgent()]
	if asked == nil {
		asked = map[step]int{}
		s.asked[r.UserAgent()] = asked
	}
	n := asked[at]
	asked[at]++
	now := time.Now()
	if last := s.last[r.UserAgent()]; last.query == r.URL.RawQuery && now.Sub(last.at) == clientPause+latency {
		s.spared[r.UserAgent()]++
	}
	s.last[r.UserAgent()] = lastRequest{r.URL.RawQuery, now}
	var a *answer
	switch first := s.script.first[at]; {
	case s.isHonest():
	case n < len(first):
		a = first[n]
	default:
		a = s.script.rest[at]
	}
	s.log = append(s.log, fmt.Sprintf("%s %s %s from %q continue %q limit %s: %s", time.Now().Format("15:04:05.000"), r.UserAgent(), at,
		r.URL.Query().Get("resourceVersion"), r.URL.Query().Get("continue"), r.URL.Query().Get("limit"), a))
	return a
}

func (s *wireServer) isHonest() bool {
	select {
	case <-s.honest:
		return true
	default:
		return false
	}
}

// counts returns the number of requests of each kind that an informer made, and the number of
// those that its client repeated by itself.
func (s *wireServer) counts(of string) (counts map[step]int, spared int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts = map[step]int{}
	for _, at := range steps {
		counts[at] = s.asked[of][at]
	}
	return counts, s.spared[of]
}

// leaseWriter sends several deletes under one version.
type leaseWriter struct {
	http.ResponseWriter
	server *wireServer
}

func (w *leaseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write passes on a frame. apisim writes one at a time.
func (w *leaseWriter) Write(data []byte) (int, error) {
	if bytes.Contains(data, []byte("DELETED")) {
		w.server.mu.Lock()
		for from, to := range w.server.leases {
			data = bytes.ReplaceAll(data, []byte(`"resourceVersion":"`+from+`"`), []byte(`"resourceVersion":"`+to+`"`))
			tag := string([]byte{0x32, byte(len(from))}) // ObjectMeta.resourceVersion in protobuf
			data = bytes.ReplaceAll(data, []byte(tag+from), []byte(tag+to))
		}
		w.server.mu.Unlock()
	}
	return w.ResponseWriter.Write(data)
}

// newAnswer makes an answer for a kind of request.
func newAnswer(random *rand.Rand, at step) *answer {
	common := []func() *answer{
		func() *answer {
			code := []int{429, 429, 500, 503, 504, 502, 410, 414, 431, 403, 404, 400, 401}[random.IntN(13)]
			return refused(code, []string{"", "", "1", "5", "30", "86400"}[random.IntN(6)])
		},
		func() *answer { return impatient([]int{429, 503}[random.IntN(2)]) },
		func() *answer {
			return &answer{"a dropped connection", func(*exchange) { panic(http.ErrAbortHandler) }}
		},
		func() *answer { return cutAfter(random.IntN(1500)) },
		func() *answer { return silence(time.Duration(1+random.IntN(60)) * time.Second) },
		func() *answer { return text("text/html", "<html>please log in</html>") },
		func() *answer { return text("application/json", "") },
	}
	if at == listStep || at == pageStep {
		common = append(common,
			func() *answer { return listed("an empty page with a token", withToken("again", true)) },
			func() *answer { return listed("a page with a token that repeats", withToken("again", false)) },
			func() *answer { return listed("an object that cannot be decoded", withItem(undecodable(random))) },
			func() *answer { return listed("a list of no number", withVersion("x")) },
		)
		return common[random.IntN(len(common))]()
	}
	then := time.Duration(random.IntN(2)) * time.Duration(random.IntN(60)) * time.Second
	event := func(name, kind, object string) func() *answer {
		return func() *answer { return events(name, then, kind, object) }
	}
	code := []int{400, 403, 404, 410, 429, 500, 503, 504}[random.IntN(8)]
	common = append(common,
		event(fmt.Sprintf("ERROR %d", code), "ERROR", statusText(code, 0)),
		event("ERROR 429 with a long wait", "ERROR", statusText(429, 2147483647)),
		event("ERROR of an object", "ERROR", `OBJECT"metadata":{}}`),
		event("an event of an unknown type", "RENAMED", `OBJECT"metadata":{"name":"a","namespace":"a"}}`),
		event("a bookmark without an object", "BOOKMARK", `null`),
		event("a bookmark of no number", "BOOKMARK", `OBJECT"metadata":{"resourceVersion":"x"}}`),
		event("a bookmark without a version", "BOOKMARK", `OBJECT"metadata":{}}`),
		event("a bookmark of an older version", "BOOKMARK", `OBJECT"metadata":{"resourceVersion":"1"}}`),
		event("a bookmark of a version that is never reached", "BOOKMARK", `OBJECT"metadata":{"resourceVersion":"18446744073709551615"}}`),
		event("an object that cannot be decoded", "ADDED", undecodable(random)),
		func() *answer {
			return text("application/vnd.kubernetes.protobuf;stream=watch", "\x00\x00\x00\x05hello")
		},
		func() *answer {
			return text("application/vnd.kubernetes.protobuf;stream=watch", "\x7f\xff\xff\xffhello")
		},
		func() *answer { return text("application/json;stream=watch", `{"type":"ADDED","object":{"kin`) },
	)
	return common[random.IntN(len(common))]()
}

// isOdd reports whether an object is one of those that no writer made.
func isOdd(obj any) bool {
	name := obj.(metav1.Object).GetName()
	return name == "odd" || name == ""
}

// undecodable is an object in JSON that some decoders accept and others refuse.
func undecodable(random *rand.Rand) string {
	return []string{
		`OBJECT"metadata":{"name":"odd","namespace":"a","resourceVersion":"1","uid":"odd"},"data":5}`,
		`OBJECT"metadata":{"name":"odd","namespace":"a","resourceVersion":"1","uid":"odd","labels":5}}`,
		`OBJECT"metadata":5}`,
		`5`,
	}[random.IntN(4)]
}

func statusText(code, retryAfter int) string {
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reasons[code],
		Message: "the script says so"}
	if retryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(retryAfter)}
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

var reasons = map[int]metav1.StatusReason{
	400: metav1.StatusReasonBadRequest, 401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
	410: metav1.StatusReasonExpired, 422: metav1.StatusReasonInvalid, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
	503: metav1.StatusReasonServiceUnavailable, 504: metav1.StatusReasonTimeout,
}

// refused answers with a status and a time to wait, in seconds.
func refused(code int, retryAfter string) *answer {
	name := strconv.Itoa(code)
	if retryAfter != "" {
		name += " after " + retryAfter + " s"
	}
	return &answer{name, func(x *exchange) {
		if retryAfter != "" {
			x.w.Header().Set("Retry-After", retryAfter)
		}
		x.say("application/json", code, statusText(code, 0))
	}}
}

// impatient answers with a status whose body asks for a wait of 68 years.
func impatient(code int) *answer {
	return &answer{fmt.Sprintf("%d with a long wait", code), func(x *exchange) {
		x.say("application/json", code, statusText(code, 2147483647))
	}}
}

func text(contentType, body string) *answer {
	return &answer{fmt.Sprintf("%s %q", contentType, body), func(x *exchange) { x.say(contentType, http.StatusOK, body) }}
}

func (x *exchange) say(contentType string, code int, body string) {
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(code)
	fmt.Fprint(x.w, strings.ReplaceAll(body, "OBJECT", x.server.object)) //nolint:errcheck // the client may be gone
}

// wait waits for a time, or until the server turns honest or the client is gone.
func (x *exchange) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-x.server.honest:
	case <-x.r.Context().Done():
	}
}

func silence(d time.Duration) *answer {
	return &answer{fmt.Sprintf("%v of silence and a dropped connection", d), func(x *exchange) {
		x.wait(d)
		panic(http.ErrAbortHandler)
	}}
}

// cutAfter sends the true answer and cuts the connection after a number of bytes.
func cutAfter(bytes int) *answer {
	return &answer{fmt.Sprintf("a cut after %d bytes", bytes), func(x *exchange) {
		x.next.ServeHTTP(&cutting{x.w, bytes}, x.r)
	}}
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (w *cutting) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *cutting) Write(data []byte) (int, error) {
	if len(data) <= w.left {
		w.left -= len(data)
		return w.ResponseWriter.Write(data)
	}
	w.ResponseWriter.Write(data[:w.left])                //nolint:errcheck // it is cut either way
	http.NewResponseController(w.ResponseWriter).Flush() //nolint:errcheck // it is cut either way
	panic(http.ErrAbortHandler)
}

// listed sends the true answer, in JSON, after a change.
func listed(name string, change func(list map[string]any, object string)) *answer {
	return &answer{name, func(x *exchange) {
		accept := x.r.Header.Get("Accept")
		x.r.Header.Set("Accept", strings.ReplaceAll(accept, "vnd.kubernetes.protobuf", "json"))
		x.r.Header.Del("Accept-Encoding")
		recorder := httptest.NewRecorder()
		x.next.ServeHTTP(recorder, x.r)
		var list map[string]any
		if err := json.Unmarshal(recorder.Body.Bytes(), &list); err != nil || recorder.Code != http.StatusOK {
			x.say("application/json", recorder.Code, recorder.Body.String())
			return
		}
		change(list, x.server.object)
		encoded, err := json.Marshal(list)
		if err != nil {
			panic(err)
		}
		x.say("application/json", http.StatusOK, string(encoded))
	}}
}

func withToken(token string, empty bool) func(map[string]any, string) {
	return func(list map[string]any, _ string) {
		list["metadata"].(map[string]any)["continue"] = token
		if empty {
			list["items"] = []any{}
		}
	}
}

func withVersion(version string) func(map[string]any, string) {
	return func(list map[string]any, _ string) { list["metadata"].(map[string]any)["resourceVersion"] = version }
}

func withItem(item string) func(map[string]any, string) {
	return func(list map[string]any, object string) {
		items, _ := list["items"].([]any)
		list["items"] = append(slices.Clone(items), json.RawMessage(strings.ReplaceAll(item, "OBJECT", object)))
	}
}

// events is a watch of one event, which ends after a while.
func events(name string, then time.Duration, kind, object string) *answer {
	return &answer{fmt.Sprintf("%s and %v", name, then), func(x *exchange) {
		x.say("application/json", http.StatusOK, fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object))
		http.NewResponseController(x.w).Flush() //nolint:errcheck // the client may be gone
		x.wait(then)
	}}
}
