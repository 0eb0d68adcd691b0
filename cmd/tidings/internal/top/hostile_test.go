package top

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/health"
)

// TestRowsOfOneName moves the cursor over rows that nothing tells apart.
func TestRowsOfOneName(t *testing.T) {
	m := model{width: 80, height: 24, screen: handlersScreen, client: clientOf(http.NotFoundHandler())}
	twin := debug.HandlerRow{Handler: health.Handler{Name: "twin"}}
	m.figures.Informers = []debug.InformerRow{{Name: "pods.v1", Handlers: []debug.HandlerRow{twin, twin, twin}}}
	for i, key := range []string{"down", "down", "up", "down", "down"} {
		m = pressed(m, key)
		ids, _ := m.shown()
		if at, want := m.place().at(ids), []int{1, 2, 1, 2, 2}[i]; at != want {
			t.Errorf("after key %d, %s, the cursor is at row %d, want %d", i+1, key, at, want)
		}
	}
}

// TestNarrowScreens draws all screens at all sizes: each line fits.
func TestNarrowScreens(t *testing.T) {
	for _, keys := range [][]string{{"1"}, {"2"}, {"3"}, {"4"}, {"5"}, {"3", "enter"}, {"4", "enter"}, {"g", "shop/settings", "enter"}, {"2", "/", "none", "enter"}, {"6", "enter"}, {"2", "/", "a"}} {
		m := shown(t, 80, 24, keys...)
		for width := range 30 {
			for _, height := range []int{0, 1, 2, 5, 10} {
				m := pressed(sent(m, tea.WindowSizeMsg{Width: width, Height: height}), "down", "pgdown", "end", "home")
				lines := strings.Split(m.draw(), "\n")
				if len(lines) > max(1, height) {
					t.Errorf("%v: %d lines at a height of %d", keys, len(lines), height)
				}
				for _, l := range lines {
					if ansi.StringWidth(l) > width {
						t.Errorf("%v: %q is wider than %d", keys, l, width)
					}
				}
			}
		}
	}
}

// TestAnswersWithoutEnd have more bytes than figures have, in the body and in a header.
func TestAnswersWithoutEnd(t *testing.T) {
	read := 0
	endless := clientOver(func(*http.Request) *http.Response {
		return &http.Response{
			StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{debug.FormHeader: {debug.FormVersion}},
			Body: io.NopCloser(readerFunc(func(p []byte) (int, error) {
				if read += len(p); read > 1<<30 {
					return 0, io.EOF
				}
				return copy(p, strings.Repeat(" ", len(p))), nil
			})),
		}
	})
	if _, err := endless.Tables(t.Context()); err == nil || !strings.Contains(err.Error(), "more than") || read > 1<<29 {
		t.Errorf("after %d bytes: %v", read, err)
	}
	long := clientOver(func(*http.Request) *http.Response {
		text := strings.Repeat("9", 100_000)
		return &http.Response{
			StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{debug.FormHeader: {text}}, Body: http.NoBody,
		}
	})
	if _, err := long.Tables(t.Context()); err == nil || len(err.Error()) > 1000 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

func clientOver(answer answering) *Client {
	c := clientOf(http.NotFoundHandler())
	c.http.Transport = answer
	return c
}
