package debug

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/flight"
)

// TestDump saves a recording from the page: not with GET, nor from the page of another site.
func TestDump(t *testing.T) {
	recorder, err := flight.New(flight.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]*flight.Recorder{"with": recorder, "without": nil} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Options{Recorder: with}, func(w *world) {
				button := strings.Contains(w.get("/"), `<form action="dump" method="post">`)
				if button != (with != nil) {
					t.Errorf("there is a button: %t", button)
				}
				for site, code := range map[string]int{
					"same-origin": http.StatusOK, "none": http.StatusOK,
					"cross-site": http.StatusForbidden, "same-site": http.StatusForbidden,
				} {
					if with == nil && code == http.StatusOK {
						code = http.StatusNotFound
					}
					r, answer := request("/dump"), httptest.NewRecorder()
					r.Method = http.MethodPost
					r.Header.Set("Sec-Fetch-Site", site)
					if w.pages.ServeHTTP(answer, r); answer.Code != code {
						t.Errorf("from %s: %d, want %d: %s", site, answer.Code, code, answer.Body)
					}
					if answer.Code == http.StatusOK {
						file := answer.Body.Bytes()
						recording, err := flight.Read(bytes.NewReader(file), int64(len(file)))
						if err != nil || len(recording.Tracks) == 0 {
							t.Errorf("the file has %v: %v", recording, err)
						}
					}
				}
				r, answer := request("/dump"), httptest.NewRecorder()
				if w.pages.ServeHTTP(answer, r); answer.Code != http.StatusMethodNotAllowed {
					t.Errorf("GET: %d", answer.Code)
				}
			})
		})
	}
}
