package cache_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is an answer of a server or a proxy to a request.
type answer struct {
	name string
	give func(x *exchange)
	lies lie
	// patient is set if no list follows a watch that gets it: it asks for patience, or says
	// that nothing changes.
	patient bool
}

// lie is the content of an answer that the server never had.
type lie int

const (
	ofNothing  lie = iota
	ofNumbers      // versions that are none
	ofVersions     // and numbers that it never reached
	ofStates       // and objects
)

func (a *answer) String() string {
	if a == nil {
		return "the truth"
	}
	return a.name
}

// exchange is a request of one of the informers, with its ResponseWriter.
type exchange struct {
	server *wireServer
	w      http.ResponseWriter
	r      *http.Request
	next   http.Handler // apisim
}

// anyAnswer makes an answer to a request of any kind. The corpus of FuzzWire depends on the numbers
// of the cases, and on the order in which choices are made.
func anyAnswer(c choices) *answer {
	switch c.IntN(8) {
	case 1:
		how, at, mask := ending(c.IntN(int(endings))), c.IntN(1<<16), byte(c.IntN(256))|1
		return spoilt(how, at, mask, pause(c))
	case 2:
		return invented(c)
	case 3:
		return dropped()
	case 4:
		return &answer{name: "no answer", give: (*exchange).hang, patient: true}
	case 5:
		return &answer{name: "a change, and the truth", give: func(x *exchange) {
			x.server.change(x)
			x.next.ServeHTTP(x.w, x.r)
		}}
	case 6:
		d := pause(c)
		return &answer{name: fmt.Sprintf("the truth after %v", d), give: func(x *exchange) {
			x.wait(d)
			x.next.ServeHTTP(x.w, x.r)
		}}
	case 7:
		return pick(c, common...)(c)
	default:
		return nil
	}
}

// common make answers to requests of each kind.
var common = []func(choices) *answer{
	func(c choices) *answer {
		code := pick(c, 429, 429, 500, 503, 504, 502, 410, 414, 431, 403, 404, 400, 401)
		return refused(code, pick(c, "", "", "1", "5", "30", aDay))
	},
	func(c choices) *answer { return impatient(pick(c, 429, 503)) },
	func(choices) *answer { return dropped() },
	func(c choices) *answer { return spoilt(cut, c.IntN(1500), 0, 0) },
	func(c choices) *answer { return silence(time.Duration(1+c.IntN(60)) * time.Second) },
	func(choices) *answer { return text("text/html", "<html>please log in</html>") },
	func(choices) *answer { return text(asJSON, "") },
}

func dropped() *answer {
	return &answer{name: "a dropped connection", patient: true, give: func(*exchange) {
		panic(http.ErrAbortHandler)
	}}
}

// otherEncoding is the truth in JSON for a request for protobuf, and the other way round.
func otherEncoding() *answer {
	return &answer{name: "the other encoding", give: func(x *exchange) {
		accept := x.r.Header.Get("Accept")
		if strings.Contains(accept, protobuf) {
			accept = asJSON
		}
		x.r.Header.Set("Accept", strings.ReplaceAll(accept, asJSON, protobuf))
		x.next.ServeHTTP(x.w, x.r)
	}}
}

// newAnswer makes an answer for a kind of request.
func newAnswer(c choices, at step) *answer {
	var special []func(choices) *answer
	if at == listStep || at == pageStep {
		special = []func(choices) *answer{
			func(choices) *answer { return emptyPage() },
			func(choices) *answer { return repeatedToken() },
			func(c choices) *answer {
				return listed("an object that cannot be decoded", withItem(undecodable(c)))
			},
			func(choices) *answer {
				a := listed("a list of no number", withVersion("x"))
				a.lies = ofNumbers
				return a
			},
		}
	} else {
		special = watched(time.Duration(c.IntN(2)) * time.Duration(c.IntN(60)) * time.Second)
	}
	return pick(c, append(special, common...)...)(c)
}

func emptyPage() *answer {
	return listed("an empty page with a token", withToken("again", true))
}

func repeatedToken() *answer {
	return listed("a page with a token that repeats", withToken("again", false))
}

const (
	noNumber     = `"resourceVersion":"x"`
	neverReached = `"resourceVersion":"18446744073709551615"`
)

// watched make answers to requests for watches, which end after a while.
func watched(then time.Duration) []func(choices) *answer {
	event := func(name, kind, object string) func(choices) *answer {
		return func(choices) *answer { return events(name, then, kind, object) }
	}
	answers := []func(choices) *answer{
		func(c choices) *answer {
			return failed(pick(c, 400, 403, 404, 410, 429, 500, 503, 504), 0, then)
		},
		func(c choices) *answer {
			a := events("an object that cannot be decoded", then, "ADDED", undecodable(c))
			a.lies = ofVersions
			return a
		},
		func(choices) *answer { return failed(429, 2147483647, then) },
		event("ERROR of an object", "ERROR", `OBJECT"metadata":{}}`),
		event("an event of an unknown type", "RENAMED",
			`OBJECT"metadata":{"name":"a","namespace":"a"}}`),
		event("a bookmark without an object", "BOOKMARK", `null`),
	}
	for _, meta := range []string{``, noNumber, `"resourceVersion":"1"`, neverReached} {
		answers = append(answers, func(choices) *answer {
			a := events("a bookmark of "+meta, then, "BOOKMARK", `OBJECT"metadata":{`+meta+`}}`)
			switch meta {
			case noNumber:
				a.lies = ofNumbers
			case neverReached:
				a.lies = ofVersions
			}
			return a
		})
	}
	for _, frame := range []string{"\x00\x00\x00\x05hello", "\x7f\xff\xff\xffhello"} {
		answers = append(answers, func(choices) *answer {
			return text(protobuf+";stream=watch", frame)
		})
	}
	return append(answers, func(choices) *answer {
		return text(asJSON+";stream=watch", `{"type":"ADDED","object":{"kin`)
	})
}

// failed is a watch that ends with an ERROR event, and a time to wait, in seconds.
func failed(code, retryAfter int, then time.Duration) *answer {
	name := fmt.Sprintf("ERROR %d after %d s", code, retryAfter)
	a := events(name, then, "ERROR", statusText(code, retryAfter))
	a.patient = code == 429
	return a
}

// isOdd reports whether a key is that of an object that no writer made.
func isOdd(key string) bool { return key == "" || key == "a/odd" || strings.HasSuffix(key, "/") }

// undecodable is an object in JSON that some decoders accept and others refuse.
func undecodable(c choices) string {
	return pick(c,
		`OBJECT"metadata":{"name":"odd","namespace":"a","resourceVersion":"1","uid":"odd"},"data":5}`,
		`OBJECT"metadata":{"name":"odd","namespace":"a","resourceVersion":"1","uid":"odd","labels":5}}`,
		`OBJECT"metadata":5}`,
		`5`)
}

func statusText(code, retryAfter int) string {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
		Code: int32(code), Reason: reasons[code], Message: "the script says so",
	}
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
	400: metav1.StatusReasonBadRequest, 401: metav1.StatusReasonUnauthorized,
	403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
	410: metav1.StatusReasonExpired, 422: metav1.StatusReasonInvalid,
	429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
	503: metav1.StatusReasonServiceUnavailable, 504: metav1.StatusReasonTimeout,
}

const aDay = "86400"

// retryAfter sets a header, if there is one. client-go's client waits for so long by itself.
func (x *exchange) retryAfter(code int, seconds string) {
	if seconds == "" {
		return
	}
	x.w.Header().Set("Retry-After", seconds)
	n, err := strconv.Atoi(seconds)
	if err == nil && n > 1000 && (code == http.StatusTooManyRequests || code >= 500) {
		x.server.hangs(x.r, 1)
	}
}

// refused answers with a status and a time to wait, in seconds.
func refused(code int, retryAfter string) *answer {
	name := strconv.Itoa(code)
	if retryAfter != "" {
		name += " after " + retryAfter + " s"
	}
	patient := retryAfter != "" || code == http.StatusNotFound || code == http.StatusTooManyRequests
	return &answer{name: name, patient: patient, give: func(x *exchange) {
		x.retryAfter(code, retryAfter)
		x.say(asJSON, code, statusText(code, 0))
	}}
}

// impatient answers with a status whose body asks for a wait of 68 years.
func impatient(code int) *answer {
	name := fmt.Sprintf("%d with a long wait", code)
	return &answer{name: name, patient: true, give: func(x *exchange) {
		x.say(asJSON, code, statusText(code, 2147483647))
	}}
}

func text(contentType, body string) *answer {
	return &answer{name: fmt.Sprintf("%s %q", contentType, body), give: func(x *exchange) {
		x.say(contentType, http.StatusOK, body)
	}}
}

func (x *exchange) say(contentType string, code int, body string) {
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(code)
	body = strings.ReplaceAll(body, "OBJECT", x.server.script.kind.object)
	io.WriteString(x.w, body) //nolint:errcheck // the client may be gone
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
	name := fmt.Sprintf("%v of silence and a dropped connection", d)
	return &answer{name: name, patient: true, give: func(x *exchange) {
		x.wait(d)
		panic(http.ErrAbortHandler)
	}}
}

// listed sends the true answer, in JSON, after a change.
func listed(name string, change func(list map[string]any, object string)) *answer {
	return &answer{name: name, give: func(x *exchange) {
		accept := x.r.Header.Get("Accept")
		x.r.Header.Set("Accept", strings.ReplaceAll(accept, "vnd.kubernetes.protobuf", "json"))
		x.r.Header.Del("Accept-Encoding")
		recorder := httptest.NewRecorder()
		x.next.ServeHTTP(recorder, x.r)
		var list map[string]any
		err := json.Unmarshal(recorder.Body.Bytes(), &list)
		if err != nil || recorder.Code != http.StatusOK {
			x.say(asJSON, recorder.Code, recorder.Body.String())
			return
		}
		change(list, x.server.script.kind.object)
		encoded, err := json.Marshal(list)
		if err != nil {
			panic(err)
		}
		x.say(asJSON, http.StatusOK, string(encoded))
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
	return func(list map[string]any, _ string) {
		list["metadata"].(map[string]any)["resourceVersion"] = version
	}
}

func withItem(item string) func(map[string]any, string) {
	return func(list map[string]any, object string) {
		items, _ := list["items"].([]any)
		list["items"] = append(slices.Clone(items),
			json.RawMessage(strings.ReplaceAll(item, "OBJECT", object)))
	}
}

// events is a watch of one event, which ends after a while.
func events(name string, then time.Duration, kind, object string) *answer {
	name = fmt.Sprintf("%s and %v", name, then)
	patient := then >= time.Second && kind != "ERROR"
	return &answer{name: name, patient: patient, give: func(x *exchange) {
		x.say(asJSON, http.StatusOK, fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object))
		http.NewResponseController(x.w).Flush() //nolint:errcheck // the client may be gone
		x.wait(then)
	}}
}
