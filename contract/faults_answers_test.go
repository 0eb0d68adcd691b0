package contract_test

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
)

// initialEnd is the bookmark that ends a streamed list.
const initialEnd = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1",` +
	`"metadata":{"resourceVersion":"3","annotations":{"k8s.io/initial-events-end":"true"}}}}`

// far is a version that the server will not reach.
const far = "1000000000000000000"

// frameOf is a frame of an object.
func frameOf(of, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`, of, itemOf(name, version))
}

// strangeFrame is a frame of an object of a kind with more metadata.
func strangeFrame(kind, metadata string) string {
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

// itemOf is an item of a list, in JSON.
func itemOf(name, version string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,`+
		`"namespace":"default","uid":"uid-%[1]s","resourceVersion":%q}}`, name, version)
}

// page answers with a page.
func page(version, token string, items ...string) http.HandlerFunc {
	return frames(fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":`+
		`{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, token, strings.Join(items, ",")))
}

// drip sends a text again and again, for half of the time at most.
func drip(text string, every time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for began := time.Now(); r.Context().Err() == nil && time.Since(began) < harmLength/2; {
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

// statusAnswer answers with a Status.
func statusAnswer(code, retryAfter int, message string) http.HandlerFunc {
	return answer(code, statusOf(code, retryAfter, message))
}

func statusOf(code, retryAfter int, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,`+
		`"reason":"InternalError","details":{"retryAfterSeconds":%d},"code":%d}`,
		message, retryAfter, code)
}

func askedToWait(seconds int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", fmt.Sprint(seconds))
		http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
	}
}

func proxy(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not through here", code) }
}

// redirectAway sends the client to a host that is not the server's.
func redirectAway() http.HandlerFunc {
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
	return frames(`{"type":"ERROR","object":` + statusOf(code, retryAfter, message) + `}`)
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
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second) // client-go reads them without an end
		page("9", token(int(n.Add(1))), items...)(w, r)
	}
}

// emptyItems answers with a list of objects without any field.
func emptyItems(n int) http.HandlerFunc {
	return page("1", "", slices.Repeat([]string{"{}"}, n)...)
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
