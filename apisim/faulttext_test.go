package apisim

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

func TestParseFault(t *testing.T) {
	for text, want := range map[string]struct {
		match Match
		fault string
	}{
		"gone":                       {Match{Verb: "watch", Resource: "*"}, "Fail(0)"},
		"gone=10s":                   {Match{Verb: "watch", Resource: "*"}, "FailLater(10s, 410)"},
		"cut=1m,resource=pods,nth=3": {Match{Verb: "watch", Resource: "pods", Skip: 2, Times: 1}, "CutLater(1m0s)"},
		"refuse=503,verb=list,resource=pods,times=3": {Match{Verb: "list", Resource: "pods", Times: 3}, "Refuse(503)"},
		"refuse=429:5s,probability=0.5,skip=2":       {Match{Resource: "*", Probability: 0.5, Skip: 2}, "Refuse(429)"},
		"delay=500ms,namespace=a,name=b":             {Match{Resource: "*", Namespace: "a", Name: "b"}, "Delay(500ms)"},
		"refuse-applied=504,verb=patch":              {Match{Verb: "patch", Resource: "*"}, "RefuseApplied(504)"},
		"apply-later=5s:504,host=a:1":                {Match{Resource: "*", Host: "a:1"}, "ApplyLater(5s, 504)"},
		"cut-before=0,user-agent=kubectl":            {Match{Resource: "*", UserAgent: "kubectl"}, "CutBefore(0)"},
		"cut-within=each":                            {Match{Resource: "*"}, "CutWithin(-1)"},
		"inflate=1:1000,verb=list,page=2":            {Match{Verb: "list", Resource: "*", Page: 2}, "Inflate(1)"},
		"stall=2:1s":                                 {Match{Verb: "watch", Resource: "*"}, "Stall(2)"},
		"fail=1:500,verb=get":                        {Match{Verb: "get", Resource: "*"}, "Fail(1)"},
	} {
		m, f, err := ParseFault(text)
		if err != nil || fmt.Sprint(m) != fmt.Sprint(want.match) || f.String() != want.fault {
			t.Errorf("%s: %+v %v, %v", text, m, f, err)
		}
	}
	for text, says := range map[string]string{
		"":                      `no fault has the name "": the names are gone, cut, refuse`,
		"error=503":             `no fault has the name "error"`,
		"cut":                   "TIME is missing: write cut=TIME",
		"cut=10":                `"10" is not a time such as 10s or 500ms: write cut=TIME`,
		"drop=1":                `"1" is too much: write drop`,
		"refuse=no":             `"no" is not a number: write refuse=CODE[:RETRY-AFTER]`,
		"refuse=200":            "200 is not the code of an error",
		"refuse=429:5s:5s":      `"5s" is too much`,
		"inflate=1":             "BYTES is missing",
		"drop,times=0":          `times is "0": give a number of 1 or more`,
		"drop,colour=red":       `no field has the name "colour": the fields are verb,`,
		"drop,probability=2":    `the probability is "2"`,
		"drop,resource":         "resource has no value: write resource=VALUE",
		"refuse=503,verb=lst":   `there is no verb "lst": the verbs are get, list, watch,`,
		"cut-after=1,verb=list": "",
	} {
		if _, _, err := ParseFault(text); says == "" && err != nil ||
			says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

// TestMatchesAreWrittenAsTheyAreRead checks the texts of matches, and reads them again.
func TestMatchesAreWrittenAsTheyAreRead(t *testing.T) {
	for text, m := range map[string]Match{
		"verb=list,resource=pods,nth=3": Match{Verb: "list", Resource: "pods"}.Nth(3),
		"resource=*,nth=1":              {Resource: "*", Times: 1},
		"resource=deployments.apps,namespace=a,name=b,host=h:1,user-agent=kubectl,page=2,skip=1,times=2,probability=0.25": {
			Resource: "deployments.apps", Namespace: "a", Name: "b", Host: "h:1", UserAgent: "kubectl",
			Page: 2, Skip: 1, Times: 2, Probability: 0.25,
		},
	} {
		if m.String() != text {
			t.Errorf("%s is written for %s", m, text)
		}
		read, _, err := ParseFault("drop," + text)
		if err != nil || !reflect.DeepEqual(read, m) {
			t.Errorf("%s is read as %s, %v", text, read, err)
		}
	}
	for text, m := range map[string]Match{
		"any request": {}, "verb=watch,query=a=,query=b=1": {Verb: "watch", Query: map[string]string{"b": "1", "a": ""}},
	} {
		if m.String() != text {
			t.Errorf("%s is written for %s", m, text)
		}
	}
}

// TestFaultForms checks that each form, with values in the place of its words, is read.
func TestFaultForms(t *testing.T) {
	values := strings.NewReplacer("[", "", "]", "", "CODE", "503", "RETRY-AFTER", "1s",
		"BYTES", "10", "TIME", "1s", "N", "1")
	for _, form := range FaultForms() {
		if _, _, err := ParseFault(values.Replace(form.Text)); err != nil || form.Help == "" {
			t.Errorf("%+v: %v", form, err)
		}
	}
}

func TestFaultsAfterATime(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a")
		for fault, then := range map[string]string{
			"cut=10s":  "broken: ",
			"gone=10s": `{"type":"ERROR"`,
		} {
			m, f, err := ParseFault(fault)
			b.must(err)
			injected := b.server.Inject(m, f)
			next, began := b.stream("resourceVersion=0"), time.Now()
			first, last := next(), next()
			if !strings.Contains(first, string(watch.Added)) || !strings.HasPrefix(last, then) ||
				time.Since(began) != 10*time.Second {
				b.Errorf("%s: %q, and after %v %q", fault, first, time.Since(began), last)
			}
			next, began = b.stream("resourceVersion=0&timeoutSeconds=60"), time.Now()
			injected.Lift()
			if first, last = next(), next(); last != "end" || time.Since(began) != time.Minute {
				b.Errorf("%s, lifted: %q, and after %v %q", fault, first, time.Since(began), last)
			}
		}
	})
}
