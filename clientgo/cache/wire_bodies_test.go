package cache_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// ending is how a body ends, or goes on.
type ending int

const (
	inOrder ending = iota
	cut            // the connection breaks
	silent         // nothing more comes
	flipped        // the next byte is another one, and then it goes on
	paused         // it goes on after a pause
	endings
)

func (e ending) String() string {
	return [...]string{"an end in order", "a cut", "silence", "another byte", "a pause"}[e]
}

func pause(c choices) time.Duration {
	return pick(c, 0, 0, time.Second, 59*time.Second, 3*time.Minute, 20*time.Minute)
}

// end ends a body.
func (x *exchange) end(how ending) {
	switch how {
	case cut:
		panic(http.ErrAbortHandler)
	case silent:
		x.hang()
	}
}

// hang waits until the client is gone.
func (x *exchange) hang() {
	x.server.hangs(x.r, 1)
	defer x.server.hangs(x.r, -1)
	select {
	case <-x.r.Context().Done():
	case <-x.server.over:
	}
	panic(http.ErrAbortHandler)
}

// spoilt is the true answer until something happens after a number of bytes.
func spoilt(how ending, at int, mask byte, d time.Duration) *answer {
	a := &answer{name: fmt.Sprintf("%v after %d bytes", how, at), patient: at == 0}
	if how == flipped {
		a.lies = ofStates
	}
	a.give = func(x *exchange) {
		x.r.Header.Del("Accept-Encoding")
		x.next.ServeHTTP(&spoiling{x.w, x, at, func(rest []byte) error {
			http.NewResponseController(x.w).Flush() //nolint:errcheck // the client may be gone
			switch how {
			case inOrder:
				return io.ErrClosedPipe
			case flipped:
				rest[0] ^= mask
			case paused:
				x.wait(d)
			default:
				x.end(how)
			}
			return nil
		}}, x.r)
	}
	return a
}

// spoiling passes on a number of bytes, and then calls happen with those that follow.
type spoiling struct {
	http.ResponseWriter
	x      *exchange
	left   int // negative after the call
	happen func(rest []byte) error
}

func (w *spoiling) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *spoiling) WriteHeader(code int) {
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
}

func (w *spoiling) Write(data []byte) (n int, err error) {
	w.Header().Del("Content-Length")
	if w.left >= 0 && len(data) > w.left {
		if n, err = w.ResponseWriter.Write(data[:w.left]); err != nil {
			return n, err
		}
		data = slices.Clone(data[w.left:])
		if err = w.happen(data); err != nil {
			return n, err
		}
		w.left = -1
	}
	if w.left >= 0 {
		w.left -= len(data)
	}
	more, err := w.ResponseWriter.Write(data)
	return n + more, err
}

var (
	statuses = []int{
		200, 200, 200, 200, 204, 301, 400, 401, 403, 404, 405, 406, 410, 422, 429, 500, 503, 504,
	}
	mediaTypes = []string{
		asJSON, protobuf, protobuf + ";stream=watch", asJSON + ";stream=watch", "text/html", "",
	}
	retryAfters = []string{"", "1", "30", "-1", "soon", "4294967297", "99999999999999999999"}
)

// invented makes an answer of any bytes.
func invented(c choices) *answer {
	type piece struct {
		pause time.Duration
		body  string
	}
	status, mediaType := pick(c, statuses...), pick(c, mediaTypes...)
	retryAfter := pick(c, retryAfters...)
	var pieces []piece
	for range c.IntN(8) {
		pieces = append(pieces, piece{pause(c), body(c)})
	}
	how := ending(c.IntN(int(silent) + 1))
	name := fmt.Sprintf("%d %s after %q s: %+v and %v", status, mediaType, retryAfter, pieces, how)
	return &answer{name: name, lies: ofStates, give: func(x *exchange) {
		x.w.Header()["Content-Type"] = nil // or net/http looks for one
		if mediaType != "" {
			x.w.Header().Set("Content-Type", mediaType)
		}
		x.retryAfter(status, retryAfter)
		x.w.WriteHeader(status)
		if status == http.StatusNoContent {
			return
		}
		for _, p := range pieces {
			http.NewResponseController(x.w).Flush() //nolint:errcheck // the client may be gone
			x.wait(p.pause)
			io.WriteString(x.w, p.body) //nolint:errcheck // the client may be gone
		}
		http.NewResponseController(x.w).Flush() //nolint:errcheck // the client may be gone
		x.end(how)
	}}
}

// body returns the bytes of a script, or texts at random.
func body(c choices) string {
	if b, ok := c.(*scriptBytes); ok {
		n := min(b.IntN(1<<16), len(b.rest))
		text := string(b.rest[:n])
		b.rest = b.rest[n:]
		return text
	}
	const phantom = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"a",` +
		`"name":"phantom","uid":"of-nothing","resourceVersion":"6"}}`
	text := pick(c, "<a>", `{"type":"ADDED","object":`+phantom+"}\n",
		`{"type":"DELETED","object":`+phantom+"}\n",
		`{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{`+
			`"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n",
		`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"6",`+
			`"continue":"more"},"items":[`+phantom+`]}`)
	return text[:len(text)-c.IntN(2)*c.IntN(len(text))]
}
