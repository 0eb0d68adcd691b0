package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

var pods = Resource{Version: "v1", Name: "pods", Kind: "Pod", Scope: ScopeNamespaced}

func newPod() *corev1.Pod { return &corev1.Pod{} }

// serve returns a client for a server that answers every request with handle.
func serve(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL + "/prefix", QPS: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// answerWith writes one answer, whatever the request.
func answerWith(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		io.WriteString(w, body) //nolint:errcheck // a client that is gone is the test's business
	}
}

type marshaler interface{ Marshal() ([]byte, error) }

func marshal(t testing.TB, obj marshaler) []byte {
	t.Helper()
	data, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// encoded is an object that is encoded already, well or not.
type encoded string

func (e encoded) Marshal() ([]byte, error) { return []byte(e), nil }

// envelopeOf encodes an object as a server does in protobuf.
func envelopeOf(t testing.TB, apiVersion, kind string, obj marshaler) []byte {
	t.Helper()
	raw := marshal(t, obj)
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	return append([]byte("k8s\x00"), marshal(t, &unknown)...)
}

func watchFrame(t testing.TB, eventType string, object []byte) string {
	t.Helper()
	event := metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: object}}
	return string(delimited(string(marshal(t, &event))))
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-" + "1", ResourceVersion: version}}
}

func TestRequestsAskWhatKubernetesDocuments(t *testing.T) {
	var asked []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery+" "+r.Header.Get("Accept"))
		answerWith(200, "application/json", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`)(w, r)
	})
	typed := NewTyped(client, pods, newPod, RESTOptions{Namespace: "default", Labels: "app=web", Fields: "metadata.name=a"})
	metadata := NewMetadata(client, Resource{Group: "apps", Version: "v1", Name: "deployments", Kind: "Deployment"}, RESTOptions{})
	ctx := t.Context()
	call := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	call(typed.List(ctx, ListOptions{Version: "0", Limit: 500}))
	call(typed.List(ctx, ListOptions{Version: "0", Limit: 500, Continue: "next"}))
	call(typed.Watch(ctx, WatchOptions{Version: "7", Timeout: 90 * time.Second}))
	call(typed.Watch(ctx, WatchOptions{SendInitialEvents: true}))
	call(metadata.List(ctx, ListOptions{}))
	call(metadata.Watch(ctx, WatchOptions{Version: "7"}))
	call(typed.List(ctx, ListOptions{Limit: 1, Key: "default/a"}))
	call(metadata.List(ctx, ListOptions{Limit: 1, Key: "shop/web"}))
	call(metadata.List(ctx, ListOptions{Limit: 1, Key: "web"}))
	const (
		selectors = "fieldSelector=metadata.name%3Da&labelSelector=app%3Dweb"
		both      = "fieldSelector=metadata.name%3Da%2Cmetadata.name%3Da&labelSelector=app%3Dweb"
		narrowed  = "fieldSelector=metadata.name%3Dweb&limit=1"
		metaList  = " application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		typedList = " application/vnd.kubernetes.protobuf,application/json"
		stream    = " application/vnd.kubernetes.protobuf;stream=watch,application/json"
	)
	want := []string{
		"/prefix/api/v1/namespaces/default/pods?" + selectors + "&limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan" + typedList,
		"/prefix/api/v1/namespaces/default/pods?continue=next&" + selectors + "&limit=500" + typedList,
		"/prefix/api/v1/namespaces/default/pods?allowWatchBookmarks=true&" + selectors + "&resourceVersion=7&timeoutSeconds=90&watch=true" + stream,
		"/prefix/api/v1/namespaces/default/pods?allowWatchBookmarks=true&" + selectors + "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true" + stream,
		"/prefix/apis/apps/v1/deployments?" + metaList,
		"/prefix/apis/apps/v1/deployments?allowWatchBookmarks=true&resourceVersion=7&watch=true application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;stream=watch,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
		"/prefix/api/v1/namespaces/default/pods?" + both + "&limit=1" + typedList,
		"/prefix/apis/apps/v1/namespaces/shop/deployments?" + narrowed + metaList,
		"/prefix/apis/apps/v1/deployments?" + narrowed + metaList,
	}
	for i := range want {
		if i >= len(asked) || asked[i] != want[i] {
			t.Errorf("request %d:\n got %s\nwant %s", i, asked[min(i, len(asked)-1)], want[i])
		}
	}
}

func TestListDecodesBothEncodings(t *testing.T) {
	remaining := int64(7)
	list := &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "next", RemainingItemCount: &remaining},
		Items:    []corev1.Pod{*pod("a", "3"), *pod("b", "4")},
	}
	const asJSON = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"next","remainingItemCount":7},"items":[
		{"metadata":{"name":"a","namespace":"default","uid":"uid-1","resourceVersion":"3"}},
		{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"default","uid":"uid-1","resourceVersion":"4"}}]}`
	tests := map[string]http.HandlerFunc{
		"protobuf": answerWith(200, protobufType, string(envelopeOf(t, "v1", "PodList", list))),
		"json":     answerWith(200, jsonType+";charset=utf-8", asJSON),
		"no type":  answerWith(200, "; none", asJSON),
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			page, err := NewTyped(serve(t, handle), pods, newPod, RESTOptions{}).List(t.Context(), ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if page.Version != "9" || page.Continue != "next" || page.Remaining != 7 || len(page.Items) != 2 {
				t.Fatalf("page is %+v", page)
			}
			second := page.Items[1]
			kind := map[string]string{"json": "Pod", "no type": "Pod"}[name] // protobuf has none, JSON as it was sent
			if second.Key != "default/b" || second.Version != "4" || second.UID != "uid-1" || second.Err != nil || second.Object.Kind != kind {
				t.Errorf("item is %+v", second)
			}
		})
	}
	t.Run("dynamic", func(t *testing.T) {
		page, err := NewDynamic(serve(t, tests["json"]), pods, RESTOptions{}).List(t.Context(), ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if first := page.Items[0].Object; first.GetKind() != "Pod" || first.GetAPIVersion() != "v1" || first.GetName() != "a" {
			t.Errorf("an item without kind became %v", first)
		}
	})
}

func TestListRefusesWhatIsNoList(t *testing.T) {
	tests := map[string]struct {
		handle http.HandlerFunc
		want   string
	}{
		"html":                 {answerWith(200, "text/html", "<html>"), `came as "text/html" (is this the address of a Kubernetes API server?`},
		"json garbage":         {answerWith(200, jsonType, "<html>"), "of markup"},
		"another kind":         {answerWith(200, jsonType, `{"kind":"Table","apiVersion":"meta.k8s.io/v1"}`), "meta.k8s.io/v1 Table"},
		"no kind":              {answerWith(200, jsonType, `{}`), "(any)"},
		"protobuf of another":  {answerWith(200, protobufType, string(envelopeOf(t, "v1", "NodeList", &corev1.NodeList{}))), "v1 NodeList"},
		"protobuf, no magic":   {answerWith(200, protobufType, "garbage"), "received 7 bytes"},
		"protobuf, cut":        {answerWith(200, protobufType, string(envelopeOf(t, "v1", "PodList", &corev1.PodList{Items: []corev1.Pod{*pod("a", "3")}})[:40])), "malformed"},
		"larger than the list": {answerWith(200, jsonType, strings.Repeat(" ", 2000)), "larger than the limit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewTyped(serve(t, test.handle), pods, newPod, RESTOptions{Transport: Transport{MaxListBytes: 1000}}).List(t.Context(), ListOptions{})
			sourceErr, ok := errors.AsType[*Error](err)
			if !ok || sourceErr.Phase != Decoding || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "list pods.v1") {
				t.Errorf("got error %v, want a decoding error that says %q", err, test.want)
			}
		})
	}
}

// podJSON is a pod as a watch sends it.
func podJSON(name, version string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","resourceVersion":%q}}`, name, version)
}

func jsonFrame(eventType, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", eventType, object)
}

func TestAnswersBecomeErrorsThatSayWhatToDo(t *testing.T) {
	const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods is forbidden","reason":"Forbidden","code":403}`
	tests := map[string]struct {
		handle http.HandlerFunc
		is     func(error) bool
		says   string
	}{
		"forbidden":    {answerWith(403, jsonType, forbidden), apierrors.IsForbidden, `grant list and watch on pods.v1 in namespace "default"`},
		"unauthorized": {answerWith(401, jsonType, "no"), apierrors.IsUnauthorized, "credentials"},
		"not found":    {answerWith(404, "text/plain", "404 page not found"), apierrors.IsNotFound, "CustomResourceDefinition"},
		"web server":   {answerWith(404, "text/html", "<html>no such page</html>"), apierrors.IsNotFound, "the address of a Kubernetes API server"},
		"login page":   {answerWith(401, "text/html", "<html>log in</html>"), apierrors.IsUnauthorized, "the address of a Kubernetes API server"},
		"gateway":      {answerWith(502, "text/html", "<html>bad gateway</html>"), func(error) bool { return true }, "of markup"},
		"in protobuf": {answerWith(410, protobufType, string(envelopeOf(t, "v1", "Status", &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410, Message: "gone by"}))), IsExpired, "gone by"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := NewTyped(serve(t, test.handle), pods, newPod, RESTOptions{Namespace: "default"})
			_, err := s.List(t.Context(), ListOptions{})
			if err == nil || !test.is(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("list: %v, want an error that says %q", err, test.says)
			}
			if _, err = s.Watch(t.Context(), WatchOptions{}); err == nil || !test.is(err) {
				t.Errorf("watch: %v", err)
			}
		})
	}
}

func TestRefusedStreamedListIsSaidSo(t *testing.T) {
	client := serve(t, answerWith(422, jsonType, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is forbidden"}`))
	s := NewTyped(client, pods, newPod, RESTOptions{})
	_, err := s.Watch(t.Context(), WatchOptions{SendInitialEvents: true})
	refused, ok := errors.AsType[*Error](err)
	if !errors.Is(err, ErrStreamedListRefused) || !ok || refused.Phase != Answered {
		t.Errorf("streamed list: %v", err)
	}
	if _, err := s.Watch(t.Context(), WatchOptions{Version: "1"}); err == nil || errors.Is(err, ErrStreamedListRefused) {
		t.Errorf("watch: %v", err)
	}
}

func TestRateLimitHoldsUpListsAndNotTheirPages(t *testing.T) {
	server := httptest.NewServer(answerWith(200, jsonType, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: 0.001, Burst: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := NewTyped(client, pods, newPod, RESTOptions{})
	if _, err := s.List(t.Context(), ListOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.List(ctx, ListOptions{Continue: "next"}); err != nil {
		t.Errorf("the next page: %v", err)
	}
	if _, err := s.List(ctx, ListOptions{}); err == nil || !strings.Contains(err.Error(), "rate limit") {
		t.Errorf("the next list: %v, want it to be held up", err)
	}
}

func TestUnreachableServer(t *testing.T) {
	client, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewTyped(client, pods, newPod, RESTOptions{}).List(t.Context(), ListOptions{})
	sourceErr, ok := errors.AsType[*Error](err)
	if !ok || sourceErr.Phase != Connecting || !strings.Contains(err.Error(), "is the API server reachable?") {
		t.Errorf("got %v", err)
	}
}

func TestListHasTheTimeoutOfTheConfigAndWatchHasNot(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			w.Header().Set("Content-Type", jsonType)
			io.WriteString(w, jsonFrame("ADDED", podJSON("a", "3"))) //nolint:errcheck // as above
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, Timeout: 50 * time.Millisecond}
	client, err := NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := NewClientFromREST(restClientFor(t, config))
	if err != nil || theirs.http.Timeout != 0 {
		t.Fatal(err, theirs.http.Timeout)
	}
	given := &http.Client{Timeout: config.Timeout}
	through, err := NewClient(&rest.Config{Host: server.URL}, given)
	if err != nil || given.Timeout == 0 {
		t.Fatal(err, given.Timeout)
	}
	s := NewTyped(client, pods, newPod, RESTOptions{})
	for _, client := range []*Client{client, theirs, through} {
		s := NewTyped(client, pods, newPod, RESTOptions{})
		if _, err := s.List(t.Context(), ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("list: %v, want the deadline", err)
		}
	}
	stream, err := s.Watch(t.Context(), WatchOptions{Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if events, err := stream.Next(); err != nil || len(events) != 1 {
		t.Errorf("watch: %v, %v", events, err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Next(); err == nil || err == io.EOF {
		t.Errorf("Next of a closed stream: %v", err)
	}
}
