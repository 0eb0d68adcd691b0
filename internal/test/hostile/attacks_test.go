package hostile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// attack describes the answers of a server while it is hostile.
type attack struct {
	name string
	// match selects the requests that are attacked; Verb is list or watch.
	match apisim.Match
	// answer is called for each of them; faults are the faults otherwise.
	answer http.HandlerFunc
	faults []apisim.Fault
	// half of the requests are attacked, as behind a load balancer.
	half bool
	// pages makes the server refuse streamed lists.
	pages bool
	// first begins the attack before the informer has listed.
	first bool
	// noList is set for an attack that does not make informers list: the server asks them to wait,
	// keeps a watch open, or sends objects that do not exist.
	noList bool
	// credible is set for an answer that looks like a correct list: an informer keeps it until
	// something leads to the next one.
	credible bool
	// most is the largest number of requests where client-go has no bound; 0 allows as many as
	// client-go sends.
	most int
	// quiet is set for an attack that an informer cannot detect, at least not in the end or not
	// behind client-go's client, which waits by itself.
	quiet bool
}

var (
	lists   = apisim.Match{Verb: "list", Resource: "configmaps"}
	watches = apisim.Match{Verb: "watch", Resource: "configmaps"}
	all     = apisim.Match{Resource: "configmaps"}
	twice   = apisim.Match{Resource: "configmaps", Times: 2}
	once    = apisim.Match{Verb: "watch", Resource: "configmaps", Times: 1}
)

// attacks are the harmful answers of a server, or of a proxy before it.
var attacks = []attack{
	{name: "429, retry after 68 years", match: all, answer: status(429, 2147483647, "busy"),
		first: true},
	{name: "503 with Retry-After of a day, by a proxy", match: all, answer: retryAfter(86_400),
		quiet: true},
	{name: "ERROR event, retry after 68 years", match: watches,
		answer: errorEvent(429, 2147483647, "busy"), noList: true},
	{name: "ERROR event 500 for ever", match: watches,
		faults: []apisim.Fault{apisim.Fail(apisim.EachFrame, 500)}},
	{name: "ERROR event with a message of 256 KB", match: watches,
		answer: errorEvent(500, 0, strings.Repeat("x", 256<<10))},
	{name: "refusal with a message of 256 KB", match: all,
		answer: status(500, 0, strings.Repeat("x", 256<<10)), first: true},
	{name: "a continue token that repeats", match: lists,
		answer: pagesOf(func(int) string { return "again" }, 2), pages: true, first: true},
	{name: "pages that stay empty", match: lists,
		answer: pagesOf(newToken, 0), pages: true, first: true},
	{name: "pages of the same two objects without end", match: lists,
		answer: pagesOf(newToken, 2), pages: true, first: true, most: 2 * leastRequests},
	{name: "a list of 30,000 empty objects", match: lists, answer: emptyItems(30_000), pages: true,
		first: true, quiet: true},
	{name: "gzip of 16 MB in the place of two answers", match: twice, answer: gzipBomb(16 << 20),
		first: true, quiet: true},
	{name: "watches refused with 414", match: watches, answer: proxy(http.StatusRequestURITooLong)},
	{name: "watches refused with 431", match: watches,
		answer: proxy(http.StatusRequestHeaderFieldsTooLarge)},
	{name: "watches refused with 500", match: watches, answer: status(500, 0, "no")},
	{name: "watches refused with 504", match: watches,
		answer: status(504, 0, "Too large resource version")},
	{name: "a version of 2^64-1", match: watches, answer: bookmark("18446744073709551615")},
	{name: "a version of 20,000 digits", match: watches,
		answer: bookmark(strings.Repeat("9", 20_000))},
	{name: "bookmarks that go back", match: watches, answer: bookmark("1")},
	{name: "unknown events", match: watches, answer: frames(`{"type":"STRANGE","object":{}}`)},
	{name: "noise in the place of events", match: watches,
		faults: []apisim.Fault{apisim.Garble(apisim.EachFrame)}},
	{name: "watches that end at once", match: watches, answer: frames()},
	{name: "a frame of 4 GB announced", match: watches, answer: hugeFrame()},
	{name: "objects of another type", match: watches, answer: frames(strange("Pod", ""))},
	{name: "redirects to another host", match: all, answer: redirect(), first: true},
	{name: "redirects in a circle", match: all, answer: redirectHome(), first: true},
	{name: "ERROR events of all codes", match: watches, answer: inTurn(errorEvents()...)},
	{name: "bookmarks of no number", match: watches,
		answer: inTurn(bookmark("x"), bookmark("007"), bookmark("-1"), bookmark("1e9"))},
	{name: "a watch that replays", match: watches,
		faults: []apisim.Fault{apisim.Duplicate(apisim.EachFrame), apisim.CutAfter(3)}, quiet: true},
	{name: "lists without a version", match: lists, answer: list("", "", object("object-0", "1")),
		pages: true, first: true, quiet: true},
	{name: "pages whose versions go up and down", match: lists,
		answer: inTurn(list("1", "t1", object("object-0", "1")),
			list("2", "t2", object("object-1", "2")),
			list("1", "", object("object-2", "1"))),
		pages: true, first: true, quiet: true},
	{name: "lists whose versions go up and down", match: lists,
		answer: inTurn(list("1", "", object("object-0", "1")), list("2", "", object("object-0", "1")),
			list("1", "", object("object-0", "1"))), pages: true, first: true, quiet: true},
	{name: "a streamed list without an end", match: watches,
		answer: drip(strings.Repeat(event("ADDED", "a", "3")+"\n", 10), time.Second),
		first:  true, most: 2 * leastRequests, noList: true, quiet: true},
	{name: "a streamed list that ends twice", match: watches,
		answer: frames(event("ADDED", "a", "3"), initialEnd, initialEnd), noList: true, credible: true},
	// Each of a list's seven pages is refused as often as not, and the backoff begins anew with
	// each that comes.
	{name: "two servers, one of which refuses", match: all,
		faults: []apisim.Fault{apisim.Refuse(500, 0)}, half: true, quiet: true,
		most: 2 * leastRequests},
	{name: "two servers, one of which lags", match: all, faults: []apisim.Fault{apisim.Lag()},
		half: true, quiet: true},
	{name: "a list of a byte each ten seconds", match: lists, answer: drip(" ", 10*time.Second),
		pages: true, first: true},
	{name: "a watch of a byte each ten seconds", match: watches, answer: drip(" ", 10*time.Second),
		noList: true, quiet: true},
	{name: "headers of 900 KB", match: all, answer: headers(900 << 10), first: true},
	{name: "headers of 2 MB", match: all, answer: headers(2 << 20), first: true},
	{name: "an object whose labels are no map", match: watches,
		answer: frames(strange("ConfigMap", `,"labels":5`)), noList: true, most: 2 * leastRequests},
	{name: "a login page", match: all,
		answer: answerAs("text/html", 200, "<html>log in first</html>")},
	{name: "an event ahead, then one behind, once", match: once,
		answer: frames(event("MODIFIED", "object-0", far), event("MODIFIED", "object-1", "3")),
		noList: true, quiet: true},
	{name: "a delete ahead, then an event behind, once", match: once,
		answer: frames(event("DELETED", "object-0", far), event("MODIFIED", "object-1", "3")),
		noList: true, quiet: true},
	{name: "ends of lists of no number, and others of watches", match: watches,
		answer: inTurn(frames(endOfList("x")), frames(endOfList("y"))),
		noList: true, most: 2 * leastRequests},
	{name: "ends of lists, near and far", match: watches,
		answer: inTurn(frames(endOfList("1")), frames(endOfList(far))),
		pages:  true, noList: true, most: 2 * leastRequests},
}

// initialEnd is the bookmark that ends a streamed list.
const initialEnd = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1",` +
	`"metadata":{"resourceVersion":"3","annotations":{"k8s.io/initial-events-end":"true"}}}}`

// far is a version that the server will not reach.
const far = "1000000000000000000"

// event is a frame of an object.
func event(of, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`, of, object(name, version))
}

// strange is a frame of an object of a kind with more metadata.
func strange(kind, metadata string) string {
	return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"v1","kind":%q,"metadata":`+
		`{"name":"a","namespace":"default","uid":"u","resourceVersion":"99"%s}}}`, kind, metadata)
}

// endOfList is the bookmark that ends a streamed list of a version.
func endOfList(version string) string {
	return strings.Replace(initialEnd, `"resourceVersion":"3"`,
		fmt.Sprintf(`"resourceVersion":%q`, version), 1)
}

// inTurn gives one answer after the other, and begins anew.
func inTurn(answers ...http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		answers[int(n.Add(1)-1)%len(answers)](w, r)
	}
}

func errorEvents() (answers []http.HandlerFunc) {
	for _, code := range []int{0, 200, 400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 502, 503, 504,
		599, -1} {
		answers = append(answers, errorEvent(code, 0, "no"))
	}
	return answers
}

// object is an item of a list, in JSON.
func object(name, version string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,`+
		`"namespace":"default","uid":"uid-%[1]s","resourceVersion":%q}}`, name, version)
}

// list answers with a page.
func list(version, token string, items ...string) http.HandlerFunc {
	return frames(fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":`+
		`{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, token, strings.Join(items, ",")))
}

// drip sends a text again and again, for half of the time at most.
func drip(text string, every time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for began := time.Now(); r.Context().Err() == nil && time.Since(began) < length/2; {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
			http.NewResponseController(w).Flush() //nolint:errcheck // a client that is gone needs no answer
			select {
			case <-r.Context().Done():
			case <-time.After(every):
			}
		}
	}
}

// headers answers with so many bytes of headers.
func headers(size int) http.HandlerFunc {
	value := strings.Repeat("x", 1<<10)
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := range size >> 10 {
			w.Header().Set(fmt.Sprint("Large-", i), value)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// answer answers with a body in JSON.
func answer(code int, body string) http.HandlerFunc {
	return answerAs("application/json", code, body)
}

// answerAs answers with a body of a media type.
func answerAs(mediaType string, code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(code)
		io.WriteString(w, body) //nolint:errcheck // a client that is gone needs no answer
	}
}

// status answers with a Status.
func status(code, retryAfter int, message string) http.HandlerFunc {
	return answer(code, statusObject(code, retryAfter, message))
}

func statusObject(code, retryAfter int, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,`+
		`"reason":"InternalError","details":{"retryAfterSeconds":%d},"code":%d}`,
		message, retryAfter, code)
}

func retryAfter(seconds int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
		http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
	}
}

func proxy(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not through here", code) }
}

// redirect sends the client to a host that is not the server's.
func redirect() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid"+r.URL.Path, http.StatusTemporaryRedirect)
	}
}

func redirectHome() http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
	}
}

// frames answers a watch with events in JSON, and ends it.
func frames(events ...string) http.HandlerFunc {
	return answer(http.StatusOK, strings.Join(append(events, ""), "\n"))
}

func errorEvent(code, retryAfter int, message string) http.HandlerFunc {
	return frames(`{"type":"ERROR","object":` + statusObject(code, retryAfter, message) + `}`)
}

func bookmark(version string) http.HandlerFunc {
	return frames(fmt.Sprintf(`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1",`+
		`"metadata":{"resourceVersion":%q}}}`, version))
}

// hugeFrame announces a frame in protobuf and sends a little of it.
func hugeFrame() http.HandlerFunc {
	body := append(binary.BigEndian.AppendUint32(nil, 0xffff_ffff), make([]byte, 1000)...)
	return answerAs("application/vnd.kubernetes.protobuf;stream=watch", 200, string(body))
}

func newToken(n int) string { return fmt.Sprint("token-", n) }

// pagesOf answers each request with so many objects and the token of its number.
func pagesOf(token func(n int) string, objects int) http.HandlerFunc {
	var items []string
	for i := range objects {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"page-%d","namespace":"default",`+
			`"uid":"u%[1]d","resourceVersion":"3"}}`, i))
	}
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		n++
		time.Sleep(time.Second) // client-go reads them without an end
		list("9", token(n), items...)(w, r)
	}
}

// emptyItems answers with a list of objects without any field.
func emptyItems(n int) http.HandlerFunc {
	return list("1", "", slices.Repeat([]string{"{}"}, n)...)
}

// gzipBomb answers with so many bytes of blanks, compressed.
func gzipBomb(size int) http.HandlerFunc {
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	blank := bytes.Repeat([]byte{' '}, 1<<20)
	for range size / len(blank) {
		z.Write(blank) //nolint:errcheck // a buffer takes it
	}
	z.Close() //nolint:errcheck // as above
	send := answer(http.StatusOK, body.String())
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		send(w, r)
	}
}

// length is the time for which a server is hostile.
const length = 10 * time.Minute
