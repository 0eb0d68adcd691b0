package apisim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const mapsPath = "/api/v1/namespaces/default/configmaps"

// stream opens a watch without client-go and returns a function that reads a line, or describes the
// end of the stream.
func (b *bench) stream(query string, header ...string) (next func() string) {
	b.Helper()
	resp := b.do("GET", mapsPath+"?watch=1&"+query, "", header...)
	body := bufio.NewReader(resp.Body)
	return func() string {
		line, err := body.ReadString('\n')
		switch {
		case err == nil:
			return line
		case errors.Is(err, io.EOF) && line == "":
			return "end"
		case errors.Is(err, io.EOF):
			return "end within " + line
		default:
			return "broken: " + line
		}
	}
}

// inBothEncodings runs a test with clients of both encodings.
func inBothEncodings(t *testing.T, o Options, test func(b *bench, client kubernetes.Interface)) {
	for _, contentType := range []string{mediaJSON, mediaProtobuf} {
		t.Run(contentType[strings.LastIndexAny(contentType, "/.")+1:], func(t *testing.T) {
			inBubble(t, o, func(b *bench) {
				client, err := kubernetes.NewForConfig(config(b.server, contentType))
				b.must(err)
				test(b, client)
			})
		})
	}
}

func (b *bench) watchWith(client kubernetes.Interface, o metav1.ListOptions) func() []string {
	b.Helper()
	w, err := client.CoreV1().ConfigMaps("default").Watch(b.ctx, o)
	b.must(err)
	return b.collect(w)
}

func TestRefuse(t *testing.T) {
	reasons := map[int]metav1.StatusReason{
		401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict,
		410: metav1.StatusReasonExpired, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
		503: metav1.StatusReasonServiceUnavailable, 504: metav1.StatusReasonTimeout, 418: metav1.StatusReasonUnknown,
	}
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		for code, reason := range reasons {
			fault := b.server.Inject(Match{Verb: "get"}, Refuse(code, 0))
			_, err := client.CoreV1().ConfigMaps("default").Get(b.ctx, "a", metav1.GetOptions{})
			if !isStatus(err, int32(code), reason) ||
				code != 410 && !strings.Contains(err.Error(), "(get configmaps a)") {
				b.Errorf("%d: %v", code, err)
			}
			if response := b.do("GET", mapsPath+"/a", ""); response.StatusCode != code || response.Header.Get("Retry-After") != "" {
				b.Errorf("%d: %d, Retry-After %q", code, response.StatusCode, response.Header.Get("Retry-After"))
			}
			fault.Lift()
			fault.Lift()
			if fault.Met() != 2 {
				b.Errorf("%d: %d requests met it", code, fault.Met())
			}
		}
		fault := b.server.Inject(Match{Verb: "watch"}, Refuse(429, 1500*time.Millisecond))
		response := b.do("GET", mapsPath+"?watch=1", "")
		if response.StatusCode != 429 || response.Header.Get("Retry-After") != "2" {
			b.Errorf("%d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
		}
		fault.Lift()
		b.done(client.CoreV1().ConfigMaps("default").List(b.ctx, metav1.ListOptions{}))
	})
}

func TestDelay(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		fault := b.server.Inject(Match{Verb: "create"}, Delay(time.Minute))
		began := time.Now()
		if _, err := b.typed.CoreV1().ConfigMaps("default").Create(b.ctx, configMap("a"), metav1.CreateOptions{}); err != nil || time.Since(began) != time.Minute {
			b.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		defer cancel()
		if _, err := b.typed.CoreV1().ConfigMaps("default").Create(ctx, configMap("b"), metav1.CreateOptions{}); err == nil {
			b.Error("a client that did not wait was answered")
		}
		if names, _, err := b.list(metav1.ListOptions{}); err != nil || fmt.Sprint(names) != "[a]" {
			b.Errorf("%v, %v", names, err)
		}
		go func() {
			time.Sleep(time.Second)
			fault.Lift()
		}()
		began = time.Now()
		if _, err := b.typed.CoreV1().ConfigMaps("default").Create(b.ctx, configMap("c"), metav1.CreateOptions{}); err != nil || time.Since(began) != time.Second {
			b.Errorf("lifted after %v: %v", time.Since(began), err)
		}
	})
}

func TestDroppedAndLostAnswers(t *testing.T) {
	inBothEncodings(t, Options{}, func(b *bench, client kubernetes.Interface) {
		maps := client.CoreV1().ConfigMaps("default")
		for i, test := range []struct {
			fault Fault
			made  bool // the write is carried out
			fails bool // the client knows that something went wrong
			code  int32
		}{
			{Drop(), false, true, 0},
			{Refuse(504, 0), false, true, 504},
			{ApplyLater(time.Hour, 504), false, true, 504},
			{RefuseApplied(504), true, true, 504},
			{RefuseApplied(409), true, true, 409},
			{CutBefore(0), true, true, 0},
			{CutAfter(0), true, true, 0},
			{CutBefore(1), true, true, 0},
			{CutWithin(1), true, true, 0},
			{Truncate(1), true, true, 0},
			{Garble(1), true, true, 0},
			{Inflate(1, 1000), true, false, 0},
			{Duplicate(1), true, true, 0},
			{Stall(0, time.Minute), true, false, 0},
			{Delay(time.Minute), true, false, 0},
			{Lag(), true, false, 0},
		} {
			name := fmt.Sprint("c", i)
			fault := b.server.Inject(Match{Verb: "create"}, test.fault)
			_, err := maps.Create(b.ctx, configMap(name), metav1.CreateOptions{})
			var status apierrors.APIStatus
			if errors.As(err, &status); (err != nil) != test.fails ||
				(status == nil) != (test.code == 0) || status != nil && status.Status().Code != test.code {
				b.Errorf("%v: %v", test.fault, err)
			}
			fault.Lift()
			if _, err := maps.Get(b.ctx, name, metav1.GetOptions{}); (err == nil) != test.made {
				b.Errorf("%v: afterwards: %v", test.fault, err)
			}
			if log := b.server.Requests().Of(Match{Verb: "create"}); len(log) != i+1 || fmt.Sprint(log[i].Faults) != fmt.Sprintf("[%v]", test.fault) {
				b.Errorf("%v: the log is\n%v", test.fault, log)
			}
		}
	})
}

func TestCutsWithinAWatch(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for i := range 3 {
			b.create(fmt.Sprint("a", i))
		}
		for name, test := range map[string]struct {
			fault Fault
			whole int
			then  string
		}{
			"head":     {CutAfter(0), 0, "broken: "},
			"before":   {CutBefore(2), 1, "broken: "},
			"within":   {CutWithin(2), 1, `broken: {"type":"ADDED"`},
			"after":    {CutAfter(2), 2, "broken: "},
			"truncate": {Truncate(2), 1, `end within {"type":"ADDED"`},
		} {
			fault := b.server.Inject(Match{Verb: "watch"}, test.fault)
			next := b.stream("resourceVersion=0")
			for i := range test.whole {
				if line := next(); !strings.Contains(line, fmt.Sprintf(`"name":"a%d"`, i)) {
					b.Errorf("%s: frame %d is %q", name, i+1, line)
				}
			}
			if line := next(); !strings.HasPrefix(line, test.then) || strings.Contains(line, "}}}") {
				b.Errorf("%s: then comes %q", name, line)
			}
			fault.Lift()
		}
	})
}

func TestRefusedStreamsAndExpiredTokens(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for i := range 4 {
			b.create(fmt.Sprint("a", i))
		}
		b.server.Inject(Match{UserAgent: "old"}, RefuseStreams())
		b.server.Inject(Match{Verb: "list", Query: map[string]string{"continue": ""}}.Nth(2), ExpireTokens())
		const streamed = mapsPath + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
		for agent, want := range map[string]int{"very old/1.0": 422, "new": 200} {
			if code, text := b.get("GET", streamed, "", "User-Agent", agent); code != want {
				b.Errorf("%s: %d %s", agent, code, text)
			}
		}
		b.server.RefuseStreamedLists(true)
		if code, text := b.get("GET", streamed, ""); code != 422 {
			b.Errorf("a server without the feature: %d %s", code, text)
		}
		_, first, err := b.list(metav1.ListOptions{Limit: 1})
		b.must(err)
		_, second, err := b.list(metav1.ListOptions{Limit: 1, Continue: first.Continue})
		b.must(err)
		_, _, err = b.list(metav1.ListOptions{Limit: 1, Continue: second.Continue})
		if !isStatus(err, 410, metav1.StatusReasonExpired) {
			b.Fatalf("got %v", err)
		}
		rest, _, err := b.list(metav1.ListOptions{Continue: err.(apierrors.APIStatus).Status().Continue})
		if err != nil || fmt.Sprint(rest) != "[a2 a3]" {
			b.Errorf("the rest is %v, %v", rest, err)
		}
	})
}

func TestFaultsOfSeveralInjectionsCombine(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		b.server.Inject(Match{Verb: "watch"}, Delay(time.Minute), Duplicate(1))
		b.server.Inject(Match{Resource: "configmaps"}, Delay(time.Second), CutAfter(2))
		began := time.Now()
		next := b.stream("resourceVersion=0")
		if time.Since(began) != time.Minute+time.Second {
			b.Errorf("it began after %v", time.Since(began))
		}
		one, two := next(), next()
		if one != two || !strings.Contains(one, `"name":"a"`) {
			b.Errorf("%q, %q", one, two)
		}
		b.create("b")
		if line := next(); !strings.Contains(line, `"name":"b"`) {
			b.Errorf("the duplicate is no frame of its own: %q", line)
		}
		if line := next(); line != "broken: " {
			b.Errorf("then comes %q", line)
		}
		want := "watch configmaps namespace=default ?resourceVersion=0&watch=1 200 faults=Delay(1m0s),Duplicate(1),Delay(1s),CutAfter(2)\n"
		if log := fmt.Sprint(b.server.Requests()); log != want {
			b.Errorf("the log is %q, want %q", log, want)
		}
	})
}

func TestChanceComesFromTheSeed(t *testing.T) {
	run := func(seed uint64) (met []int) {
		inBubble(t, Options{Seed: seed}, func(b *bench) {
			b.server.Inject(Match{Verb: "list", Probability: 0.3, Skip: 10, Times: 80}, Refuse(503, 0))
			for i := range 100 {
				if code, _ := b.get("GET", mapsPath, ""); code == 503 {
					met = append(met, i)
				}
			}
		})
		return met
	}
	first, again, other := run(1), run(1), run(2)
	if fmt.Sprint(first) != fmt.Sprint(again) || fmt.Sprint(first) == fmt.Sprint(other) {
		t.Errorf("seeds 1, 1 and 2 meet\n%v\n%v\n%v", first, again, other)
	}
	if len(first) < 10 || len(first) > 40 || first[0] < 10 || first[len(first)-1] >= 90 {
		t.Errorf("of 80 with a chance of 0.3 are met %v", first)
	}
}

func TestMatch(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		b.get("GET", mapsPath, "", "User-Agent", "agent/1.0 (linux)")
		b.get("GET", mapsPath+"?limit=5&continue=", "")
		b.get("GET", mapsPath+"/a", "")
		b.get("GET", "/api/v1/configmaps?fieldSelector=metadata.name%3Da", "")
		b.get("PUT", "/apis/apps/v1/namespaces/default/deployments/web/status", "{}")
		b.get("GET", "/version", "")
		for _, test := range []struct {
			m    Match
			want int
		}{
			{Match{}, 6},
			{Match{Verb: "list"}, 3},
			{Match{Verb: "GET"}, 1},
			{Match{Resource: "configmaps"}, 4},
			{Match{Resource: "*"}, 5},
			{Match{Resource: "deployments.apps"}, 0},
			{Match{Resource: "deployments.apps/status"}, 1},
			{Match{Namespace: "default"}, 4},
			{Match{Name: "a"}, 2},
			{Match{UserAgent: "agent/1"}, 1},
			{Match{Host: "apisim.invalid"}, 6},
			{Match{Host: "other"}, 0},
			{Match{Query: map[string]string{"limit": ""}}, 1},
			{Match{Query: map[string]string{"limit": "5", "continue": ""}}, 1},
			{Match{Query: map[string]string{"limit": "6"}}, 0},
			{Match{Verb: "list", Skip: 1}, 2},
			{Match{Verb: "list", Times: 2}, 2},
			{Match{Verb: "list"}.Nth(3), 1},
			{Match{Verb: "list"}.Nth(4), 0},
			{Match{Probability: 0.0001}, 6},
		} {
			if got := b.server.Requests().Of(test.m); len(got) != test.want {
				b.Errorf("%v selects %d of %v", test.m, len(got), b.server.Requests())
			}
		}
		log := b.server.Requests()
		if log[1].Query.Get("limit") != "5" || log[1].Status != 200 || log[2].Resource != configMaps || !log[2].Time.Equal(time.Now()) {
			b.Errorf("the log is %+v", log)
		}
		b.server.ForgetRequests()
		if log := b.server.Requests(); len(log) != 0 {
			b.Errorf("after forgetting there is %v", log)
		}
	})
}
