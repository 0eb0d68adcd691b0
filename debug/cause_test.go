package debug

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/source"
)

var errRefused = &source.Error{Op: "watch", Resource: "pods.v1", Phase: source.Connecting,
	Err: &url.Error{Op: "Get", URL: "https://10.0.0.1", Err: syscall.ECONNREFUSED}}

// outage has the figures of a program whose API server has not answered for 12 seconds.
func outage(now time.Time) *gather.Figures {
	all := &gather.Figures{}
	for n := range 8 {
		name := fmt.Sprintf("type%d.v1", n)
		all.Informers = append(all.Informers, gather.Informer{Name: name, Health: health.Informer{
			Name: name, Synced: true, Watch: health.Watch{
				State: health.StateBackoff, FailingSince: now.Add(-12 * time.Second), LastError: errRefused,
			},
		}})
	}
	for n := range 3 {
		c := controller.Health{Name: fmt.Sprint("c", n), State: controller.StateRunning, BackingOff: 10,
			LastError: "Put \"https://10.0.0.1\": dial tcp: connection refused", LastErrorAt: now.Add(-time.Second)}
		if n > 0 {
			c.State, c.WaitingFor, c.Queued.Changes = controller.StateStale, []string{"type1.v1 in namespace a"}, 15
		}
		all.Controllers = append(all.Controllers, gather.Controller{
			Health: c, Waits: func(string) []controller.Wait {
				return []controller.Wait{{State: controller.WaitBackingOff, Attempt: 9}}
			},
		})
	}
	return all
}

// TestFirstFailuresWait: a key in conflict has a known cure, and one that has failed often, or has its
// next attempt late, is a warning.
func TestFirstFailuresWait(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		wait controller.Wait
		want Level
	}{
		{controller.Wait{State: controller.WaitBackingOff, Attempt: 2, Next: now.Add(time.Second)}, LevelWaiting},
		{controller.Wait{State: controller.WaitRunning, Attempt: 20}, LevelWaiting},
		{controller.Wait{State: controller.WaitBackingOff, Attempt: 6, Next: now.Add(time.Second)}, LevelWarning},
		{controller.Wait{State: controller.WaitBackingOff, Attempt: 2, Next: now.Add(time.Minute)}, LevelWarning},
	} {
		test.wait.Since = now
		problems := controllerProblems(gather.Controller{
			Health: controller.Health{State: controller.StateRunning, BackingOff: 1},
			Waits:  func(string) []controller.Wait { return []controller.Wait{test.wait} },
		}, now)
		if len(problems) != 1 || problems[0].Level != test.want {
			t.Errorf("%+v: %+v, want the level %v", test.wait, problems, test.want)
		}
	}
}

// TestOneCauseIsOneLine: 13 problems of an outage are one cause, which counts what it concerns.
func TestOneCauseIsOneLine(t *testing.T) {
	now := time.Now()
	h := &Handler{sampler: newSampler(t.Context(), nil)}
	problems := h.problems(outage(now), now)
	causes := causesOf(problems)
	if len(problems) != 13 || len(causes) != 1 {
		t.Fatalf("%d problems with %d causes: %+v", len(problems), len(causes), causes)
	}
	c := causes[0]
	if c.Help() != helpOf(string(noAnswer)) {
		t.Errorf("the help is %s", c.Help())
	}
	if c.What != "The API server does not answer" || now.Sub(c.Since) != 12*time.Second || c.Level != LevelError ||
		c.Concerns() != "8 informers, 3 controllers, 60 keys" {
		t.Errorf("the cause is %+v, of %s", c, c.Concerns())
	}
}

// TestCausesAreSorted by level, and then by age.
func TestCausesAreSorted(t *testing.T) {
	now := time.Now()
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	var got []string
	for _, c := range causesOf(sorted([]Problem{
		{Of: "a", Level: LevelWaiting, Since: ago(90)}, {Of: "b", Level: LevelWarning, Since: ago(5)},
		{Of: "c", Level: LevelError}, {Of: "d", Level: LevelError, Since: ago(3)},
		{Of: "e", Level: LevelError, Since: ago(7)}, {Of: "f", Level: LevelWarning, Since: ago(6)},
	})) {
		got = append(got, c.Problems[0].Of)
	}
	if order := strings.Join(got, ""); order != "edcfba" {
		t.Errorf("the order is %s", order)
	}
}

// TestWaitsWithAKnownCureAreNotErrors: lists that run, an optional resource, a skipped controller.
func TestWaitsWithAKnownCureAreNotErrors(t *testing.T) {
	now := time.Now()
	all := &gather.Figures{Skipped: map[string]string{"x": "no such resource"}}
	for name, w := range map[string]health.Watch{
		"lists": {State: health.StateListing, Since: now}, "optional": {State: health.StateNoSuchResource},
	} {
		all.Informers = append(all.Informers, gather.Informer{Name: name, Health: health.Informer{
			Name: name, Watch: w, Synced: name == "optional"}})
	}
	all.Controllers = append(all.Controllers, gather.Controller{Health: controller.Health{
		Name: "c", State: controller.StateWaiting, WaitingFor: []string{"lists"}}})
	h := &Handler{sampler: newSampler(t.Context(), nil)}
	problems := h.problems(all, now)
	if len(problems) != 4 || slices.ContainsFunc(problems, func(p Problem) bool { return p.Level != LevelWaiting }) {
		t.Errorf("the problems are %+v", problems)
	}
	for _, c := range causesOf(problems) {
		if c.What == topicListing && c.Concerns() == "1 informer, 1 controller" {
			return
		}
	}
	t.Errorf("the controller does not wait with its informer: %+v", causesOf(problems))
}

// TestFailures has an error of each kind, and errors that have no cause in common.
func TestFailures(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, test := range []struct {
		err  error
		want failure
	}{
		{nil, ""}, {errors.New("the object has no name"), ""}, {errRefused, noAnswer},
		{fmt.Errorf("watch pods.v1: %w", source.ErrSilent), noAnswer},
		{apierrors.NewServiceUnavailable("down"), serverError}, {apierrors.NewTooManyRequests("later", 1), serverError},
		{apierrors.NewUnauthorized("who"), noCredentials}, {apierrors.NewForbidden(pods, "", nil), noPermission},
		{&source.Error{Err: apierrors.NewNotFound(pods, "")}, notServed},
		{apierrors.NewConflict(pods, "a", errors.New("connection refused")), ""},
		{errors.New("etcdserver: request timed out"), serverError},
	} {
		if got := failureOf(test.err); got != test.want {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
	}
}

// TestAnOutageOnThePage has a server that nobody reaches: the first page has one line, which a click opens.
func TestAnOutageOnThePage(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.server.SetAvailable(false)
		w.pass(30 * time.Second)
		w.has("/", true, `<details data-key="The API server does not answer"><summary>`, "3 informers")
		o := getJSON[Overview](w, "/")
		if len(o.Causes) != 1 || o.Causes[0].What != string(noAnswer) {
			t.Errorf("the causes are %+v", o.Causes)
		}
		w.server.SetAvailable(true)
		w.pass(2 * time.Minute)
		if o := getJSON[Overview](w, "/"); len(o.Causes) != 1 {
			t.Errorf("afterwards the causes are %+v", o.Causes)
		}
	})
}

// TestElectionsShareTheCause: a Lease without a holder has the cause of the informers.
func TestElectionsShareTheCause(t *testing.T) {
	now := time.Now()
	all := outage(now)
	all.Elections = []election.Health{{Lease: "a/b", State: election.Standby,
		LastError: apierrors.NewInternalError(errors.New("x")), LastErrorAt: metav1.Now().Time}}
	h := &Handler{sampler: newSampler(t.Context(), nil)}
	if causes := causesOf(h.problems(all, now)); len(causes) != 1 || causes[0].Others != 1 {
		t.Errorf("the causes are %+v", causes)
	}
}

// TestEachProblemIsInTheDocs: docs/problems.md has the headings that problems link to.
func TestEachProblemIsInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range append([]string{
		string(noAnswer), string(serverError), string(noCredentials), string(noPermission), string(notServed),
	}, topics...) {
		if !strings.Contains(string(page), "\n## "+topic+"\n") {
			t.Errorf("there is no heading %q", topic)
		}
	}
}

// topics are all topics that are no failures.
var topics = []string{
	topicFailing, topicStopped, topicListing, topicSilent, topicHandler, topicObjects, topicWaiting,
	topicEnded, topicSkipped, topicQueue, topicQueued, topicBackingOff, topicHeldBack, topicLongCall,
	topicRewrites, topicMapping, topicNoHolder, topicPolling, topicMap, topicUncovered, topicLate,
	topicJoining,
}
