package debug

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidings-go/tidings/controller/election"
)

// TestProblemsWithoutAnError has states without an error to name.
func TestProblemsWithoutAnError(t *testing.T) {
	for _, p := range electionProblems(election.Health{State: election.Standby}) {
		if strings.Contains(p.What, "nil") {
			t.Errorf("a problem is %q", p.What)
		}
	}
}

// TestTimesOfOtherClocks has times of servers whose clocks are ahead, and no times.
func TestTimesOfOtherClocks(t *testing.T) {
	if got := ago(time.Now().Add(time.Hour)); strings.Contains(got, "-") {
		t.Errorf("a time to come was %q ago", got)
	}
}

// TestHosts has more forms of the names of hosts.
func TestHosts(t *testing.T) {
	h := &Handler{o: Options{Hosts: []string{"ops.example", "dot.example."}}}
	for host, want := range map[string]bool{
		"localhost.": true, "LocalHost.:80": true, "ops.example.": true, "dot.example": true, "dot.example.:1": true,
		"[fe80::1%eth0]:8085": true, "[::ffff:127.0.0.1]": true, "::1": true,
		".": false, "..": false, "evil.example.": false, "evil.example.localhost.evil": false, "xlocalhost": false,
		"127.0.0.1.evil.example": false, "ops.example.evil": false, "evil%localhost": false, "": false, ":80": false,
	} {
		if got := h.isAllowed(host); got != want {
			t.Errorf("host %q: %t, want %t", host, got, want)
		}
	}
}

// TestBodiesOfRequestsAreNotRead sends a GET with a form in its body.
func TestBodiesOfRequestsAreNotRead(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		for _, path := range []string{"/", "/informer", "/controller", "/key", "/changes", "/stream"} {
			body := &countedBody{text: strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"format\"\r\n\r\njson\r\n--x--\r\n")}
			r := httptest.NewRequest(http.MethodGet, path, body)
			r.Host = "localhost"
			r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
			w.pages.ServeHTTP(httptest.NewRecorder(), r)
			if body.read > 0 {
				t.Errorf("%s: %d bytes of the body were read", path, body.read)
			}
		}
	})
}

type countedBody struct {
	text *strings.Reader
	read int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	b.read += n
	return n, err
}
