package debug

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

const configMaps, someKey = "/informer?name=configmaps.v1", "/key?key=a/c0"

var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// plain is the JSON of an overview, as far as the tests look at it.
type plain struct {
	Problems []struct {
		Of, Link, What string
		Since          time.Time
	}
	Informers []struct {
		Name    string
		Pending int
		Memory  Memory
		Health  struct {
			State   string
			Objects int
		}
	}
	Controllers []struct{ Health struct{ Name, State string } }
	Elections   []struct{ Lease, State, Holder string }
}

func TestOverview(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.has("/", true, "configmaps.v1", "secrets.v1", "pods.v1", "Forbidden", "grant list and watch",
			`href="controller?name=labels"`, "Leading", "a/labels")
		o := getJSON[plain](w, "/")
		if len(o.Problems) != 1 || o.Problems[0].Of != "pods.v1" || time.Since(o.Problems[0].Since) != 5*time.Second {
			t.Errorf("problems: %+v, want that of pods for 5s", o.Problems)
		}
		if len(o.Informers) != 3 || o.Informers[0].Name != "configmaps.v1" || o.Informers[0].Health.Objects != 3 {
			t.Errorf("informers: %+v", o.Informers)
		}
		if m := o.Informers[0].Memory; m.ObjectBytes < 500 || m.IndexBytes <= 0 || m.Bytes != m.ObjectBytes+m.KeyBytes+m.IndexBytes {
			t.Errorf("memory: %+v", m)
		}
		page := w.get("/")
		_, memory, _ := strings.Cut(page, "Memory of caches")
		if first, second := strings.Index(memory, "configmaps.v1"), strings.Index(memory, "pods.v1"); first < 0 || second < first {
			t.Errorf("the caches are not in the order of their memory: %s", memory)
		}
		if len(o.Controllers) != 1 || o.Controllers[0].Health.State != string(controller.StateRunning) {
			t.Errorf("controllers: %+v", o.Controllers)
		}
		if len(o.Elections) != 1 || o.Elections[0].Holder == "" || o.Elections[0].State != "Leading" {
			t.Errorf("elections: %+v", o.Elections)
		}
	})
}

// TestJSONIsRead reads the JSON form of the pages into the types that they are written from.
func TestJSONIsRead(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.set("c0", "second")
		w.pass(3 * time.Second)
		o := getJSON[Overview](w, "/")
		pods, configs := o.Informers[2], o.Informers[0]
		if pods.Health.State != health.StateForbidden || !strings.Contains(pods.Health.LastError.Error(), "grant list") {
			t.Errorf("pods: %+v", pods.Health)
		}
		if len(configs.Handlers) != 2 || configs.Handlers[0].Name != "slow" || configs.Handlers[0].Behind.Duration < 3*time.Second {
			t.Errorf("handlers: %+v", configs.Handlers)
		}
		if configs.Health.Batches.Count() == 0 || o.Controllers[0].Health.Durations.Count() == 0 {
			t.Errorf("no durations in %+v, %+v", configs.Health, o.Controllers[0])
		}
		if one := getJSON[InformerFigures](w, configMaps); one.Handlers[0].Pending == 0 || one.Memory.Bytes == 0 || one.Found != 3 {
			t.Errorf("the page of an informer: %+v", one)
		}
		calls := getJSON[ControllerFigures](w, "/controller?name=labels").LastCalls
		if len(calls) == 0 || len(calls[0].Reasons) == 0 || calls[0].Reasons[0].Cause != controller.Updated {
			t.Errorf("the last calls: %+v", calls)
		}
		if key := getJSON[KeyFigures](w, someKey); len(key.Cached) != 2 || len(key.Calls) == 0 {
			t.Errorf("the page of a key: %+v", key)
		}
		answer := httptest.NewRecorder()
		w.pages.ServeHTTP(answer, request("/nothing"))
		if got := answer.Header().Get(FormHeader); got != FormVersion {
			t.Errorf("an answer has the version %q, want %s", got, FormVersion)
		}
	})
}

// TestProblemsName the slow, stuck and failing parts, and the time since when.
func TestProblemsName(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.set("c0", "second")
		w.set("c1", "bad")
		w.pass(15 * time.Second)
		found := map[string]time.Duration{}
		for _, p := range getJSON[plain](w, "/").Problems {
			found[p.Of+" "+p.What] = time.Since(p.Since)
		}
		for _, want := range []struct {
			text string
			of   func(since time.Duration) bool
		}{
			{"handler slow of configmaps.v1 is behind", func(d time.Duration) bool { return d >= 10*time.Second }},
			{"controller labels 1 key waits after an error; the last one, of a/c1: a bad value", nil},
		} {
			ok := false
			for text, since := range found {
				ok = ok || strings.HasPrefix(text, want.text) && (want.of == nil || want.of(since))
			}
			if !ok {
				t.Errorf("no problem %q among %v", want.text, found)
			}
		}
	})
}

// TestProblemsOfHealth has one problem in each value.
func TestProblemsOfHealth(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	well := health.Informer{Name: "pods.v1", Synced: true,
		Watch: health.Watch{State: health.StateWatching, LastEvent: ago(time.Minute)}}
	h := &Handler{sampler: newSampler(t.Context(), nil)}
	of := func(change func(i *health.Informer)) []Problem {
		i := well
		change(&i)
		return h.informerProblems(gather.Informer{Name: i.Name, Health: i}, now)
	}
	running := controller.Health{Name: "c", State: controller.StateRunning}
	ofController := func(change func(c *controller.Health)) []Problem {
		c := running
		change(&c)
		return controllerProblems(gather.Controller{
			Health: c, Waits: func(string) []controller.Wait { return nil },
		}, now)
	}
	for want, found := range map[string][]Problem{
		"":                                  of(func(*health.Informer) {}),
		"has stopped":                       of(func(i *health.Informer) { i.State = health.StateStopped }),
		"is not synced: Listing, 7 objects": of(func(i *health.Informer) { i.Synced, i.State, i.Listed = false, health.StateListing, 7 }),
		"received nothing":                  of(func(i *health.Informer) { i.LastEvent = ago(time.Hour) }),
		"2 objects dropped":                 of(func(i *health.Informer) { i.Dropped = 2 }),
		"1 object cannot be decoded, as object a/b": of(func(i *health.Informer) {
			i.Undecodable, i.LastDropped = 1, errors.New("object a/b: a text")
		}),
		"is Backoff in namespace b": of(func(i *health.Informer) { i.Namespaces = map[string]health.Watch{"b": {State: health.StateBackoff}} }),
		"has not returned from a/b": of(func(i *health.Informer) {
			i.Handlers = []health.Handler{{Running: "a/b", RunningSince: ago(time.Minute)}}
		}),
		"is Stuck: 9":         of(func(i *health.Informer) { i.Handlers = []health.Handler{{State: health.HandlerStuck, Pending: 9}} }),
		"waits for [pods.v1]": ofController(func(c *controller.Health) { c.State, c.WaitingFor = controller.StateStale, []string{"pods.v1"} }),
		"has ended: why":      ofController(func(c *controller.Health) { c.Ended = "why" }),
		"a/b is held back":    ofController(func(c *controller.Health) { c.Parked = []controller.Parked{{Key: "a/b", Since: ago(time.Minute)}} }),
		"has not returned from c/d": ofController(func(c *controller.Health) {
			c.Running = []controller.Running{{Key: "c/d", For: metav1.Duration{Duration: time.Hour}}}
		}),
		"a/b has been queued for the longest time, of 3 keys: all are busy": ofController(func(c *controller.Health) {
			c.Queued.Changes, c.Oldest, c.Waiting.Duration, c.WaitingBecause = 3, "a/b", time.Hour, "all are busy"
		}),
		"has a queue that does not move: 3 keys wait, and all run": ofController(func(c *controller.Health) {
			c.Queued.Changes, c.HungFor.Duration, c.WaitingBecause = 3, time.Minute, "all run"
		}),
		"a/c has been queued for the longest time, of 1 key": ofController(func(c *controller.Health) {
			c.Queued.Requeues, c.Oldest, c.Waiting.Duration = 1, "a/c", 11*time.Second
		}),
		"makes no calls for some keys: it waits for [pods.v1 in namespace b]": ofController(func(c *controller.Health) {
			c.WaitingFor = []string{"pods.v1 in namespace b"}
		}),
		"a function has failed for a/b": ofController(func(c *controller.Health) { c.Mappings = []controller.MappingFailure{{Object: "a/b"}} }),
		"data.value of a/x is changed in turn by the calls of a/b (me) and by others (you)": ofController(func(c *controller.Health) {
			c.Fights = []controller.Rewrite{{
				Key: "a/b", Object: "a/x", Fields: []string{"data.value"}, Manager: "me", Other: "you"}}
		}),
		"calls of a/b change data.x, data.y of a/b because of their own writes": ofController(func(c *controller.Health) {
			c.Looping = []controller.Rewrite{{Key: "a/b", Object: "a/b", Fields: []string{"data.x", "data.y"}}}
		}),
		"is read now and then": electionProblems(election.Health{Polling: context.Canceled}),
		"has no holder":        electionProblems(election.Health{State: election.Standby}),
	} {
		if len(found) > 1 || (len(found) == 1) != (want != "") || want != "" && !strings.Contains(found[0].What, want) {
			t.Errorf("problems %+v, want %q", found, want)
		}
	}
}

func TestInformerPage(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.pass(3 * time.Second)
		w.has(configMaps, true, "Watching", "slow", "controller labels", "label app", "3 in all",
			`href="key?key=a%2Fc0"`, "Pending", "Listing", "<svg")
		w.has(configMaps+"&search=c1", true, "1 contain", "a%2Fc1")
		w.has(configMaps+"&search=c1", false, "a%2Fc0")
		f := getJSON[struct {
			Memory *Memory
			Keys   []string
		}](w, configMaps)
		if f.Memory == nil || f.Memory.Sampled != 3 || f.Memory.Bytes < 500 || f.Memory.Bytes > 100_000 || len(f.Keys) != 3 {
			t.Errorf("figures: %+v, %+v", f.Memory, f)
		}
	})
}

func TestControllerPage(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.set("c1", "bad")
		w.pass(time.Second)
		w.has("/controller?name=labels", true, "Running", "a bad value", "1 key waits", "0 of 1 worker<",
			"Last calls that failed", "Updated configmaps.v1 a/c1", "Initial configmaps.v1 a/c2")
		w.has(someKey[:len(someKey)-1]+"1", true, "has failed: a bad value", "Last calls of controllers",
			"Updated configmaps.v1 a/c1")
	})
}

func TestKeyPage(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.has(someKey, true, "In <a", "*v1.ConfigMap", "*v1.Secret", "It is a Secret", "Not in",
			"Objects are not shown", "no managed fields")
		w.has(someKey, false, secretText, "first", "password")
		w.has("/key?key=a/none", true, "No informer caches")
	})
	inWorld(t, Options{Bodies: true}, func(w *world) {
		w.set("c0", "second")
		w.pass(time.Second)
		w.has(someKey, true, "value: second", "an object, which is not shown")
		w.has(someKey, false, secretText, "password", `"data"`)
	})
}

func TestChanges(t *testing.T) {
	for _, bodies := range []bool{false, true} {
		inWorld(t, Options{Bodies: bodies}, func(w *world) {
			go func() {
				time.Sleep(time.Second)
				w.set("c1", "second")
				w.set("c2", "third")
			}()
			f := getJSON[ChangesFigures](w, "/changes?informer=configmaps.v1&filter=c1")
			if len(f.Changes) != 2 || f.Changes[0].Key != "a/c1" || f.Changes[0].Type != "Updated" {
				t.Fatalf("changes: %+v, want that of the user and that of the controller", f.Changes)
			}
			fields := map[string]Field{}
			for _, field := range f.Changes[0].Fields {
				fields[field.Path] = field
			}
			value := fields["data.value"]
			if value.Path == "" || (value.New == `"second"`) != bodies || (value.Old == `"first"`) != bodies {
				t.Errorf("bodies %t: the fields are %+v", bodies, fields)
			}
			for path, field := range fields {
				if strings.Contains(field.New, "metadata") {
					t.Errorf("%s shows %s", path, field.New)
				}
			}
		})
	}
}

func TestChangesOfSecretsAreNotCompared(t *testing.T) {
	inWorld(t, Options{Bodies: true}, func(w *world) {
		go func() {
			time.Sleep(time.Second)
			_, err := w.server.Delete(w.Context(), secretsResource, "a", "c0")
			w.fatal(err)
		}()
		page := w.get("/changes?informer=secrets.v1&once=1")
		if !strings.Contains(page, "(a Secret)") || !strings.Contains(page, "Deleted") || strings.Contains(page, secretText) {
			t.Errorf("the page is %s", page)
		}
	})
}

// TestStream reads server-sent events until the client goes, and until the handler is closed.
func TestStream(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		for _, end := range []func(cancel func()){func(cancel func()) { cancel() }, func(func()) { w.pages.Close() }} {
			ctx, cancel := context.WithCancel(w.Context())
			answer, done := httptest.NewRecorder(), make(chan struct{})
			go func() {
				defer close(done)
				w.pages.ServeHTTP(answer, request("/stream?informer=configmaps.v1").WithContext(ctx))
			}()
			synctest.Wait()
			w.set("c2", "second")
			w.pass(time.Second)
			end(cancel)
			<-done
			cancel()
			if got := answer.Body.String(); !strings.Contains(got, `"key":"a/c2"`) || !strings.HasPrefix(got, "data: {") || !answer.Flushed {
				t.Errorf("the stream is %q", got)
			}
			w.set("c2", "first")
			w.pass(time.Second)
			if handlers := len(w.shown[0].(*tidings.Factory).Health()[0].Handlers); handlers != 2 {
				t.Errorf("%d handlers are left, want 2", handlers)
			}
		}
	})
}

// TestFastChangesAreCounted has more changes than a view keeps.
func TestFastChangesAreCounted(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		c, err := w.pages.follow("configmaps.v1", "")
		w.fatal(err)
		defer c.remove()
		for range pendingChanges + 10 {
			c.add(inspect.Change{Type: change.Deleted, Key: "a/c0"})
		}
		made, skipped, ok := c.next(w.Context(), w.Context())
		if len(made) != pendingChanges || skipped != 10 || !ok {
			t.Errorf("%d changes and %d skipped", len(made), skipped)
		}
	})
}

func TestRequestsOfOthersAreRefused(t *testing.T) {
	inWorld(t, Options{Hosts: []string{"ops.example"}}, func(w *world) {
		for host, want := range map[string]int{
			"localhost": 200, "LOCALHOST:80": 200, "127.0.0.1:8085": 200, "[::1]:8085": 200, "x.localhost:1": 200,
			"10.2.3.4": 200, "ops.example:8085": 200, "Ops.Example": 200,
			"attacker.example": 403, "attacker.example:8085": 403, "localhost.attacker.example": 403, "": 403,
		} {
			r, answer := request("/"), httptest.NewRecorder()
			r.Host = host
			w.pages.ServeHTTP(answer, r)
			if answer.Code != want {
				t.Errorf("host %q: %d, want %d: %s", host, answer.Code, want, answer.Body)
			}
			header := answer.Header()
			if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") ||
				header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" {
				t.Errorf("the headers are %v", header)
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			r, answer := request("/"), httptest.NewRecorder()
			r.Method = method
			if w.pages.ServeHTTP(answer, r); answer.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s: %d", method, answer.Code)
			}
		}
	})
}

func TestPagesThatDoNotExist(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		for path, want := range map[string]string{
			"/informer?name=x":           `there is no informer "x": there are configmaps.v1, secrets.v1, pods.v1`,
			"/controller?name=x":         `there is no controller "x": there are labels`,
			"/key":                       "name a key",
			"/stream?informer=x":         "there is no informer",
			"/changes?informer=x&once=1": "there is no informer",
			"/other":                     "404 page not found",
		} {
			answer := httptest.NewRecorder()
			w.pages.ServeHTTP(answer, request(path))
			if answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), want) {
				t.Errorf("%s: %d %s, want %q", path, answer.Code, answer.Body, want)
			}
		}
	})
}

// TestPagesAskForNothingElsewhere looks for addresses of other hosts, and for scripts and styles
// that the content security policy would block.
func TestPagesAskForNothingElsewhere(t *testing.T) {
	for _, dir := range []fs.FS{pages, static} {
		err := fs.WalkDir(dir, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(dir, path)
			text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "")
			for _, bad := range []string{"http:", "https:", "//www", " style=", " onclick=", "innerHTML"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s has %q", path, bad)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestPagesThatCannotBeServed(t *testing.T) {
	if err := Serve(t.Context(), "", Options{}); err == nil || !strings.Contains(err.Error(), "nothing to show") {
		t.Errorf("without sources: %v", err)
	}
	for address, want := range map[string]string{"here": "not host:port", "localhost:99999": "invalid port"} {
		err := Serve(t.Context(), address, Options{}, new(controller.Manager))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
