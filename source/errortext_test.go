package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
)

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// longStatus is a Status whose every text is long.
func longStatus(reason metav1.StatusReason, code int32, size int) metav1.Status {
	long := strings.Repeat("é", size/2)
	status := metav1.Status{
		Status: metav1.StatusFailure, Reason: reason, Code: code, Message: long,
		Details: &metav1.StatusDetails{Name: long, Group: long, Kind: long, RetryAfterSeconds: 7},
	}
	for range 100 {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: "TooLong", Message: long, Field: long})
	}
	return status
}

func TestMessagesOfTheServerAreCut(t *testing.T) {
	status := longStatus(metav1.StatusReasonForbidden, 403, 4<<10)
	for name, err := range map[string]error{
		"a refusal":         statusError(answerOf(403, jsonType, strings.NewReader(jsonOf(t, status))), request{op: "list", resource: "pods"}),
		"an ERROR event":    (&restStream[*corev1.Pod]{}).decodeError([]byte(jsonOf(t, status))),
		"an error as it is": Bound(&apierrors.StatusError{ErrStatus: status}),
		"an error within":   Bound(fmt.Errorf("reading: %w", &apierrors.StatusError{ErrStatus: status})),
		"in the phase":      request{op: "list", resource: "pods"}.fail(Answered, fmt.Errorf("reading: %w", &apierrors.StatusError{ErrStatus: status})),
	} {
		if text := err.Error(); len(text) > maxText+200 || !strings.Contains(text, "… (4 kB)") {
			t.Errorf("%s: %d bytes: %.200s", name, len(text), text)
		}
		if wait, ok := RetryAfter(err); !apierrors.IsForbidden(err) || !ok || wait != 7*time.Second || !apierrors.HasStatusCause(err, "TooLong") {
			t.Errorf("%s: forbidden %t, to be tried again after %v", name, apierrors.IsForbidden(err), wait)
		}
	}
	cut, ok := errors.AsType[*apierrors.StatusError](Bound(&apierrors.StatusError{ErrStatus: status}))
	if !ok || len(fmt.Sprintf("%+v", cut.ErrStatus)) > 64<<10 || len(status.Details.Causes) != 100 {
		t.Errorf("a Status of %d bytes is left, the original has %d causes", len(fmt.Sprintf("%+v", cut.ErrStatus)), len(status.Details.Causes))
	}
	long := strings.Repeat("x", 4<<10)
	for limit, err := range map[int]error{
		2 << 10: Bound(errors.New(long)),
		1 << 10: Bound(&apierrors.StatusError{ErrStatus: metav1.Status{Message: long}}),
	} {
		if text := err.Error(); text != long[:limit]+"… (4 kB)" {
			t.Errorf("%d bytes are left, want %d", len(text), limit)
		}
	}
	if short := errors.New("short"); Bound(short) != short || Bound(nil) != nil {
		t.Error("an error with little text is not what it was")
	}
}

// TestALongMessageEndsAWatch reads an ERROR event of 31 MiB over HTTP.
func TestALongMessageEndsAWatch(t *testing.T) {
	status := metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Message: strings.Repeat("x", 31<<20)}
	stream, err := NewTyped(serve(t, answerWith(200, jsonType, jsonFrame("ERROR", jsonOf(t, status)))), pods, newPod, RESTOptions{}).Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = stream.Next(); !IsExpired(err) || len(err.Error()) > 2*maxText || !strings.Contains(err.Error(), "… (31 MB)") {
		t.Errorf("expired %t, %d bytes: %.100s", IsExpired(err), len(err.Error()), err)
	}
}

// TestMalformedFieldsAreNotQuoted puts a value of each type of JSON where it cannot be decoded.
func TestMalformedFieldsAreNotQuoted(t *testing.T) {
	const number = "31337313373133731337"
	for name, object := range map[string]string{
		"a time":             `{"metadata":{"name":"a","creationTimestamp":"s3cret"}}`,
		"a number for text":  `{"metadata":{"name":` + number + `}}`,
		"a large number":     `{"metadata":{"name":"a","generation":` + number + `}}`,
		"a fraction":         `{"metadata":{"name":"a","generation":3.` + number + `}}`,
		"text for a number":  `{"metadata":{"name":"a","generation":"s3cret"}}`,
		"text for a map":     `{"metadata":{"name":"a","labels":"s3cret"}}`,
		"a list for a map":   `{"metadata":{"name":"a","labels":["s3cret"]}}`,
		"a map for text":     `{"metadata":{"name":{"s3cret":"s3cret"}}}`,
		"a value in a map":   `{"metadata":{"name":"a","labels":{"s3cret":` + number + `}}}`,
		"true for text":      `{"metadata":{"name":true}}`,
		"no base64":          `{"metadata":{"name":"a"},"data":{"s3cret":"s3cret!"}}`,
		"a number as data":   `{"metadata":{"name":"a"},"data":{"s3cret":` + number + `}}`,
		"text as data":       `{"metadata":{"name":"a"},"data":"s3cret"}`,
		"no JSON":            `{"metadata":{"name":"a"},"data":s3cret}`,
		"a kind":             `{"apiVersion":"v1","kind":"s3cret","metadata":{"name":"a"}}`,
		"a version":          `{"apiVersion":"s3cret","kind":"Secret","metadata":{"name":"a"}}`,
		"a kind of any form": `{"apiVersion":"s3cret/s3cret","kind":"` + strings.Repeat("S3cret", 40) + `","metadata":{"name":"a"}}`,
	} {
		secrets := Resource{Version: "v1", Name: "secrets", Kind: "Secret", Scope: ScopeNamespaced}
		typed := func(c *Client) *REST[*corev1.Secret] {
			return NewTyped(c, secrets, func() *corev1.Secret { return new(corev1.Secret) }, RESTOptions{})
		}
		for place, body := range map[string]string{
			"an item":  `{"apiVersion":"v1","kind":"SecretList","metadata":{},"items":[` + object + `]}`,
			"a list":   object,
			"an event": jsonFrame("ADDED", object), "a bookmark": jsonFrame("BOOKMARK", object), "a Status": jsonFrame("ERROR", object),
			"an event of an odd type": `{"type":"s3cret","object":` + object + `}`, "the type of an event": `{"type":` + number + `,"object":` + object + `}`,
		} {
			client := serve(t, answerWith(200, jsonType, body))
			for kind, read := range map[string]func() string{
				"typed":    func() string { return readErrors(t, typed(client)) },
				"dynamic":  func() string { return readErrors(t, NewDynamic(client, secrets, RESTOptions{})) },
				"metadata": func() string { return readErrors(t, NewMetadata(client, secrets, RESTOptions{})) },
			} {
				if text := read(); strings.Contains(text, "3cret") || strings.Contains(text, number[:8]) {
					t.Errorf("%s in %s, %s: %s", name, place, kind, text)
				}
			}
		}
	}
}

// TestMalformedFieldsAreDescribed names the form that a value of a Go type must have.
func TestMalformedFieldsAreDescribed(t *testing.T) {
	var into struct {
		Time     metav1.Time
		Data     []byte
		Quantity resource.Quantity
		Duration metav1.Duration
	}
	for object, want := range map[string]string{
		`{"Time":"s3cret"}`:     "a time that is not in the form of RFC 3339",
		`{"Data":"s3cret!"}`:    "illegal base64 data at input byte 6",
		`{"Quantity":"s3cret"}`: "a text that is not a quantity",
		`{"Quantity":"1mm"}`:    "a text that is not a quantity",
		`{"Quantity":".Ei"}`:    "a text that is not a quantity",
		`{"Duration":"s3cret"}`: "a value that its Go type refuses, with a *",
	} {
		err := unmarshalJSON([]byte(object), &into)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", object, err, want)
		}
	}
}

// readErrors returns the texts of all errors of a list and a watch.
func readErrors[T Object](t *testing.T, s *REST[T]) string {
	t.Helper()
	page, err := s.List(t.Context(), ListOptions{})
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%v\n%+v\n%#v\n", err, err, err))
	for _, item := range page.Items {
		text.WriteString(fmt.Sprintf("%v\n%#v\n", item.Err, item.Err))
	}
	events, err := readAllEvents(t, s, WatchOptions{})
	for _, e := range events {
		text.WriteString(fmt.Sprintf("%v\n%#v\n", e.Err, e.Err))
	}
	return text.String() + fmt.Sprintf("%v\n%+v\n%#v\n", err, err, err)
}

// TestRefusalsAreNotQuoted reads answers with a code of an error that are no Status.
func TestRefusalsAreNotQuoted(t *testing.T) {
	for _, body := range []string{"s3cret", `{"kind":"Secret","data":{"k":"s3cret"}}`, "<html>s3cret", "HTTP/1.1 500 s3cret", `{"kind":"Status","status":"Failure","code":"s3cret"}`, "k8s\x00s3cret"} {
		for _, mediaType := range []string{jsonType, protobufType, "text/plain"} {
			for _, code := range []int{400, 401, 403, 404, 410, 429, 500, 503} {
				_, err := NewDynamic(serve(t, answerWith(code, mediaType, body)), pods, RESTOptions{}).List(t.Context(), ListOptions{})
				status, ok := errors.AsType[*apierrors.StatusError](err)
				if !ok || strings.Contains(fmt.Sprintf("%v %+v", err, status.ErrStatus), "s3cret") {
					t.Errorf("%d, %s, %q: %v", code, mediaType, body, err)
				}
			}
		}
	}
}

// latencies takes the URLs that metrics of client-go get.
type latencies struct{ urls []string }

func (l *latencies) Observe(_ context.Context, _ string, u url.URL, _ time.Duration) {
	l.urls = append(l.urls, u.String())
}

// TestNoPasswordInMetricsAndErrors has an address with a user and a password.
func TestNoPasswordInMetricsAndErrors(t *testing.T) {
	got := &latencies{}
	before, beforeWaits := metrics.RequestLatency, metrics.RateLimiterLatency
	t.Cleanup(func() { metrics.RequestLatency, metrics.RateLimiterLatency = before, beforeWaits })
	metrics.RequestLatency, metrics.RateLimiterLatency = got, got
	plain := serve(t, answerWith(200, jsonType, `{"kind":"PodList","metadata":{}}`))
	host := plain.rest.Get().URL()
	host.User = url.UserPassword("ada", "s3cret")
	client, err := NewClient(&rest.Config{Host: host.String(), QPS: 100}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewDynamic(client, pods, RESTOptions{}).List(t.Context(), ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(got.urls) != 2 || strings.Contains(fmt.Sprint(got.urls), "s3cret") {
		t.Errorf("metrics get %v", got.urls)
	}
	for _, host := range []string{"http://ada:s3cret@a:b", "http://ada:s3cret%zz@a", "http://ada:s3cret/x@a", "http://ada:s3 cret@a"} {
		_, err := NewClient(&rest.Config{Host: host}, nil)
		if err == nil || strings.Contains(err.Error(), "s3") {
			t.Errorf("%s: %v", host, err)
		}
	}
}
