package apisim

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// TestMatchesAsText checks the texts of matches.
func TestMatchesAsText(t *testing.T) {
	for text, m := range map[string]Match{
		"verb=list,resource=pods,nth=3": Match{Verb: "list", Resource: "pods"}.Nth(3),
		"resource=*,nth=1":              {Resource: "*", Times: 1},
		"resource=deployments.apps,namespace=a,name=b,host=h:1,user-agent=kubectl,page=2,skip=1,times=2,probability=0.25": {
			Resource: "deployments.apps", Namespace: "a", Name: "b", Host: "h:1", UserAgent: "kubectl",
			Page: 2, Skip: 1, Times: 2, Probability: 0.25,
		},
		"any request": {}, "verb=watch,query=a=,query=b=1": {Verb: "watch", Query: map[string]string{"b": "1", "a": ""}},
	} {
		if m.String() != text {
			t.Errorf("%s is written for %s", m, text)
		}
	}
}

func TestFaultsAfterATime(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		for then, fault := range map[string]Fault{
			"broken: ":        CutLater(10 * time.Second),
			`{"type":"ERROR"`: FailLater(10*time.Second, http.StatusGone),
		} {
			injected := b.server.Inject(Match{Verb: "watch"}, fault)
			next, began := b.stream("resourceVersion=0"), time.Now()
			first, last := next(), next()
			if !strings.Contains(first, string(watch.Added)) || !strings.HasPrefix(last, then) ||
				time.Since(began) != 10*time.Second {
				b.Errorf("%s: %q, and after %v %q", then, first, time.Since(began), last)
			}
			next, began = b.stream("resourceVersion=0&timeoutSeconds=60"), time.Now()
			injected.Lift()
			if first, last = next(), next(); last != "end" || time.Since(began) != time.Minute {
				b.Errorf("%s, lifted: %q, and after %v %q", then, first, time.Since(began), last)
			}
		}
	})
}
