package source

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// paths answers by path.
func paths(t *testing.T, answers map[string]func(*http.Request) *http.Response) *Client {
	t.Helper()
	c, err := NewClient(&rest.Config{Host: "http://server.invalid", QPS: -1, Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		resp := answers[r.URL.Path](r)
		resp.Request = r
		return resp, nil
	})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answeredInJSON(body io.Reader) *http.Response { return answerOf(http.StatusOK, jsonType, body) }

const podsInDiscovery = `{"kind":"APIResourceList","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`

// TestOnActivity counts the calls of a source that has to ask for its resource first: for both
// requests, and for each part of their bodies.
func TestOnActivity(t *testing.T) {
	parts := func(texts ...string) io.Reader {
		var readers []io.Reader
		for _, text := range texts {
			readers = append(readers, strings.NewReader(text))
		}
		return io.MultiReader(readers...)
	}
	var watch context.Context
	client := paths(t, map[string]func(*http.Request) *http.Response{
		"/api/v1": func(*http.Request) *http.Response {
			return answeredInJSON(parts(podsInDiscovery[:20], podsInDiscovery[20:]))
		},
		"/api/v1/namespaces/a/pods": func(r *http.Request) *http.Response {
			if r.URL.Query().Get("watch") != "" {
				watch = r.Context()
				return answeredInJSON(parts(jsonFrame("ADDED", podJSON("a", "3")), jsonFrame("ADDED", podJSON("b", "4"))))
			}
			return answeredInJSON(parts(`{"kind":"PodList",`, `"apiVersion":"v1",`, `"items":[]}`))
		},
	})
	s := NewTyped(client, Resource{Version: "v1", Kind: "Pod"}, func() *corev1.Pod { return new(corev1.Pod) }, RESTOptions{Namespace: "a"})
	onActivity := 0
	note := func() { onActivity++ }
	expect := func(what string, want int) {
		t.Helper()
		if onActivity != want {
			t.Errorf("%s: onActivity %d times, want %d", what, onActivity, want)
		}
		onActivity = 0
	}
	if _, err := s.List(t.Context(), ListOptions{OnActivity: note}); err != nil {
		t.Fatal(err)
	}
	expect("a list and the discovery before it", 2+2+2+3)
	stream, err := s.Watch(t.Context(), WatchOptions{SendInitialEvents: true, OnActivity: note})
	if err != nil {
		t.Fatal(err)
	}
	expect("the beginning of a stream", 2)
	for events := 0; events < 2; {
		batch, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		events += len(batch)
	}
	expect("two events", 2)
	if err := stream.Close(); err != nil || watch.Err() == nil {
		t.Errorf("Close returns %v and ends the request: %v", err, watch.Err())
	}
}

// TestSilenceIsSaid ends requests with ErrSilent as the cause.
func TestSilenceIsSaid(t *testing.T) {
	silent := func(begin string) func(*http.Request) *http.Response {
		return func(r *http.Request) *http.Response {
			return answeredInJSON(io.MultiReader(strings.NewReader(begin), readerFunc(func([]byte) (int, error) {
				<-r.Context().Done()
				return 0, r.Context().Err()
			})))
		}
	}
	for name, test := range map[string]struct {
		discovery, list func(*http.Request) *http.Response
		says            string
		phase           Phase
	}{
		"discovery": {silent(`{"kind":`), nil, "discover Pod.v1: the server sent nothing, after 8 bytes of the answer", Streaming},
		"list":      {nil, silent(`{"kind":"PodList"`), `list pods.v1 in namespace "a": the server sent nothing, after 17 bytes of the answer`, Streaming},
	} {
		t.Run(name, func(t *testing.T) {
			if test.discovery == nil {
				test.discovery = func(*http.Request) *http.Response { return answeredInJSON(strings.NewReader(podsInDiscovery)) }
			}
			client := paths(t, map[string]func(*http.Request) *http.Response{"/api/v1": test.discovery, "/api/v1/namespaces/a/pods": test.list})
			s := NewTyped(client, Resource{Version: "v1", Kind: "Pod"}, func() *corev1.Pod { return new(corev1.Pod) }, RESTOptions{Namespace: "a"})
			ctx, cancel := context.WithCancelCause(t.Context())
			onActivity, limit := 0, map[string]int{"discovery": 3, "list": 6}[name]
			_, err := s.List(ctx, ListOptions{OnActivity: func() {
				if onActivity++; onActivity == limit {
					cancel(ErrSilent)
				}
			}})
			sourceErr, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, ErrSilent) || sourceErr.Phase != test.phase || !strings.HasPrefix(err.Error(), test.says) || !strings.Contains(err.Error(), "MaxSilence") {
				t.Errorf("the error is %v, want one that says %q", err, test.says)
			}
		})
	}
}

// readerFunc is an io.Reader that is one function.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestRateLimitIsNoSilence waits for the rate limit of the client longer than a caller waits for
// the server.
func TestRateLimitIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := roundTripFunc(func(r *http.Request) (*http.Response, error) {
			resp := answeredInJSON(strings.NewReader(`{"kind":"PodList","items":[]}`))
			resp.Request = r
			return resp, nil
		})
		client, err := NewClient(&rest.Config{Host: "http://server.invalid", QPS: 0.001, Burst: 1, Transport: list}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, onActivity, began := NewTyped(client, pods, newPod, RESTOptions{}), 0, time.Now()
		for range 2 {
			if _, err := s.List(t.Context(), ListOptions{OnActivity: func() { onActivity++ }}); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(began); waited < 900*time.Second || onActivity < int(waited/time.Second) {
			t.Errorf("onActivity %d times in %v", onActivity, waited)
		}
	})
}
