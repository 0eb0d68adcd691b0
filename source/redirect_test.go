package source

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// TestRedirectsKeepCredentials follows redirects of every request to the same server, and
// refuses those that would take the credentials to another host or off TLS.
func TestRedirectsKeepCredentials(t *testing.T) {
	const list = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`
	var reached atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		answerWith(200, jsonType, list)(w, r)
	}))
	defer stranger.Close()
	var target string
	redirecting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/moved") {
			answerWith(200, jsonType, list)(w, r)
			return
		}
		http.Redirect(w, r, target, http.StatusTemporaryRedirect)
	})
	plain, encrypted := httptest.NewServer(redirecting), httptest.NewTLSServer(redirecting)
	defer plain.Close()
	defer encrypted.Close()
	hostOf := func(url string) string { return url[strings.Index(url, "//")+2:] }
	for _, tt := range []struct {
		name, server, target string
		refused              bool
	}{
		{"another host", plain.URL, stranger.URL + "/api", true},
		{"another host by TLS", encrypted.URL, stranger.URL + "/api", true},
		{"off TLS", encrypted.URL, "http://" + hostOf(encrypted.URL) + "/moved", true},
		{"another name of the host", plain.URL, strings.Replace(stranger.URL, "127.0.0.1", "localhost", 1), true},
		{"the same server", plain.URL, "/moved", false},
		{"the same server by TLS", encrypted.URL, encrypted.URL + "/moved", false},
		{"to TLS", plain.URL, encrypted.URL + "/moved", false},
	} {
		config := &rest.Config{Host: tt.server, QPS: -1, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
		if !strings.HasPrefix(tt.server, "https") && !strings.HasPrefix(tt.target, "https") {
			config.TLSClientConfig, config.BearerToken = rest.TLSClientConfig{}, "" // http.DefaultClient then
		}
		own, err := NewClient(config, nil)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := NewClientFromREST(restClientFor(t, config))
		if err != nil {
			t.Fatal(err)
		}
		target = tt.target
		for kind, client := range map[string]*Client{"own": own, "from REST": theirs} {
			s := NewTyped(client, pods, newPod, RESTOptions{})
			for op, do := range map[string]func() error{
				"list":     func() error { _, err := s.List(t.Context(), ListOptions{}); return err },
				"watch":    func() error { return openAndClose(s.Watch(t.Context(), WatchOptions{})) },
				"discover": func() error { _, err := client.Resolve(t.Context(), Resource{Version: "v1", Kind: "Pod"}); return err },
			} {
				err := do()
				if !tt.refused {
					if errors.Is(err, ErrRedirect) {
						t.Errorf("%s, %s, %s: %v", tt.name, kind, op, err)
					}
					continue
				}
				if !errors.Is(err, ErrRedirect) {
					t.Errorf("%s, %s, %s: %v, want %v", tt.name, kind, op, err, ErrRedirect)
					continue
				}
				for _, says := range []string{hostOf(tt.server), strings.TrimSuffix(hostOf(tt.target), "/api"), "server"} {
					if !strings.Contains(err.Error(), strings.TrimSuffix(says, "/moved")) {
						t.Errorf("%s, %s, %s: %q does not name %s", tt.name, kind, op, err, says)
					}
				}
			}
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests reached the other host", n)
	}
	if http.DefaultClient.CheckRedirect != nil {
		t.Error("http.DefaultClient was changed")
	}
}

// openAndClose closes a stream that was opened.
func openAndClose[T any](stream Stream[T], err error) error {
	if err == nil {
		err = stream.Close()
	}
	return err
}

// TestRedirectsEnd does not follow a server that redirects to itself for ever, and asks
// the CheckRedirect that a client brings.
func TestRedirectsEnd(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, "/again", http.StatusFound)
	}))
	defer server.Close()
	client := restClientFor(t, &rest.Config{Host: server.URL, QPS: -1})
	list := func() error {
		c, err := NewClientFromREST(client)
		if err != nil {
			t.Fatal(err)
		}
		_, err = NewTyped(c, pods, newPod, RESTOptions{}).List(t.Context(), ListOptions{})
		return err
	}
	if err := list(); err == nil || asked != maxRedirects {
		t.Errorf("%v after %d requests, want %d", err, asked, maxRedirects)
	}
	own := errors.New("no redirects at all")
	client.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return own }}
	if err := list(); !errors.Is(err, own) {
		t.Errorf("%v, want %v", err, own)
	}
}
