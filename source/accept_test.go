package source

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

const emptyPodList = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`

// accepts are the Accept headers of requests.
type accepts struct {
	mu  sync.Mutex
	all []string
}

func (a *accepts) note(r *http.Request) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, r.Header.Get("Accept"))
	return r.Header.Get("Accept")
}

// take returns the headers since the last call.
func (a *accepts) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

// serveMany returns a function that makes clients for one server.
func serveMany(t *testing.T, handle http.HandlerFunc) func() *Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return func() *Client {
		client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
}

// listAndWatch sends a list, a watch and a streamed list, and returns the first error.
func listAndWatch[T Object](ctx context.Context, s *REST[T]) error {
	_, err := s.List(ctx, ListOptions{})
	for _, o := range []WatchOptions{{Version: "5"}, {SendInitialEvents: true}} {
		if err == nil {
			err = openAndClose(s.Watch(ctx, o))
		}
	}
	return err
}

// TestDropManagedFieldsInAccept checks the header of sources in each form: each clause has the
// parameter if the objects go without managed fields, unless Transport turns it off.
func TestDropManagedFieldsInAccept(t *testing.T) {
	var asked accepts
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.note(r)
		answerWith(200, jsonType, emptyPodList)(w, r)
	})
	const (
		list, stream = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;stream=watch"
		inJSON       = "application/json"
		partialList  = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		partial      = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		drop         = ";drop=metadata.managedFields"
	)
	managed := []string{"metadata.managedFields"}
	for name, test := range map[string]struct {
		options RESTOptions
		drops   bool
	}{
		"nothing":                 {},
		"Drop":                    {RESTOptions{Drop: managed}, true},
		"Drop of more":            {RESTOptions{Drop: []string{"metadata.managedFields", "metadata.labels"}}, true},
		"Drop of other fields":    {options: RESTOptions{Drop: []string{"metadata.labels"}}},
		"Drop of a part":          {options: RESTOptions{Drop: []string{"metadata.managedFields.manager"}}},
		"DropManagedFields":       {RESTOptions{DropManagedFields: true}, true},
		"Drop, turned off":        {options: RESTOptions{Drop: managed, Transport: Transport{NoServerDrop: true}}},
		"DropManagedFields, off":  {options: RESTOptions{DropManagedFields: true, Transport: Transport{NoServerDrop: true}}},
		"turned off without Drop": {options: RESTOptions{Transport: Transport{NoServerDrop: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			suffix := ""
			if test.drops {
				suffix = drop
			}
			check := func(err error, want ...string) {
				t.Helper()
				if got := asked.take(); err != nil || !slices.Equal(got, want) {
					t.Errorf("asked for\n%s\n, %v, want\n%s", strings.Join(got, "\n"), err, strings.Join(want, "\n"))
				}
			}
			ctx := t.Context()
			events := stream + suffix + "," + inJSON + suffix
			check(listAndWatch(ctx, NewTyped(client, pods, newPod, test.options)),
				list+suffix+","+inJSON+suffix, events, events)
			check(listAndWatch(ctx, NewDynamic(client, pods, test.options)),
				inJSON+suffix, inJSON+suffix, inJSON+suffix)
			events = protobufType + partial + ";stream=watch" + suffix + "," + inJSON + partial + suffix
			_, err := NewMetadata(client, pods, test.options).Watch(ctx, WatchOptions{Version: "5"})
			check(err, events)
			// The list in the answer is one of pods.
			NewMetadata(client, pods, test.options).List(ctx, ListOptions{}) //nolint:errcheck // its header is the matter
			check(nil, list+partialList+suffix+","+inJSON+partialList+suffix)
		})
	}
}

// TestNotAcceptableDrop has a server answer 406 to the parameter. The request is sent again without
// it, whatever it was, and no source of the client sends the parameter again. Another client does.
func TestNotAcceptableDrop(t *testing.T) {
	var asked accepts
	newClient := serveMany(t, func(w http.ResponseWriter, r *http.Request) {
		if accept := asked.note(r); strings.Contains(accept, "drop=") {
			answerWith(http.StatusNotAcceptable, "text/plain", "no such parameter")(w, r)
		} else {
			answerWith(200, jsonType, emptyPodList)(w, r)
		}
	})
	const with, without = "application/json;drop=metadata.managedFields", "application/json"
	o := RESTOptions{Drop: []string{"metadata.managedFields"}}
	for name, test := range map[string]func(*REST[*unstructured.Unstructured]) error{
		"list": func(s *REST[*unstructured.Unstructured]) error {
			_, err := s.List(t.Context(), ListOptions{})
			return err
		},
		"watch": func(s *REST[*unstructured.Unstructured]) error {
			return openAndClose(s.Watch(t.Context(), WatchOptions{Version: "5"}))
		},
		"streamed list": func(s *REST[*unstructured.Unstructured]) error {
			return openAndClose(s.Watch(t.Context(), WatchOptions{SendInitialEvents: true}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				c := newClient()
				first := test(NewDynamic(c, pods, o))
				second := listAndWatch(t.Context(), NewDynamic(c, pods, o))
				want := []string{with, without, without, without, without}
				if got := asked.take(); first != nil || second != nil || !slices.Equal(got, want) {
					t.Errorf("asked for %q, %v, %v, want %q", got, first, second, want)
				}
			}
		})
	}
}

// TestNotAcceptableAnyway has a server answer 406 with and without the parameter: the error is
// returned, and the parameter is sent again later. A 406 is nothing to send again of a request
// without the parameter.
func TestNotAcceptableAnyway(t *testing.T) {
	var asked accepts
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.note(r)
		answerWith(http.StatusNotAcceptable, "text/plain", "nothing at all")(w, r)
	})
	const with, without = "application/json;drop=metadata.managedFields", "application/json"
	s := NewDynamic(client, pods, RESTOptions{Drop: []string{"metadata.managedFields"}})
	for range 2 {
		_, err := s.List(t.Context(), ListOptions{})
		if got := asked.take(); !apierrors.IsNotAcceptable(err) || !slices.Equal(got, []string{with, without}) {
			t.Errorf("asked for %q, %v", got, err)
		}
	}
	_, err := NewDynamic(client, pods, RESTOptions{}).List(t.Context(), ListOptions{})
	if got := asked.take(); !apierrors.IsNotAcceptable(err) || !slices.Equal(got, []string{without}) {
		t.Errorf("without Drop, asked for %q, %v", got, err)
	}
}

// TestOtherAnswersToDrop checks that no other answer has the request sent again.
func TestOtherAnswersToDrop(t *testing.T) {
	for _, code := range []int{400, 403, 404, 410, 415, 429, 500, 503} {
		var asked accepts
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/prefix/api/v1/pods" {
				asked.note(r)
				answerWith(code, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure"}`)(w, r)
			}
		})
		s := NewDynamic(client, pods, RESTOptions{Drop: []string{"metadata.managedFields"}})
		_, err := s.List(t.Context(), ListOptions{})
		if got := asked.take(); err == nil || len(got) != 1 {
			t.Errorf("%d: asked for %q, %v", code, got, err)
		}
	}
}
