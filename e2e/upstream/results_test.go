package main

import (
	"slices"
	"strings"
	"testing"
)

func TestResults(t *testing.T) {
	const events = `
{"Action":"build-output","ImportPath":"a/broken","Output":"a.go:1: undefined\n"}
{"Action":"build-fail","ImportPath":"a/broken"}
{"Action":"start","Package":"a/good"}
{"Action":"run","Package":"a/good","Test":"TestOne"}
{"Action":"pass","Package":"a/good","Test":"TestOne","Elapsed":0.1}
{"Action":"skip","Package":"a/good","Test":"TestTwo"}
{"Action":"pass","Package":"a/good","Elapsed":1.5}
{"Action":"start","Package":"a/specs"}
{"Action":"output","Package":"a/specs","Test":"TestSpecs","Output":"\u001b[38;5;9mFAIL!\u001b[0m -- \u001b[1m275 Passed\u001b[0m | \u001b[1m1 Failed\u001b[0m | \u001b[1m0 Pending\u001b[0m | \u001b[1m2 Skipped\u001b[0m\n"}
{"Action":"fail","Package":"a/specs","Test":"TestSpecs"}
{"Action":"fail","Package":"a/specs","Elapsed":3}
{"Action":"start","Package":"a/broken"}
{"Action":"fail","Package":"a/broken","Elapsed":0,"FailedBuild":"a/broken"}
{"Action":"start","Package":"a/empty"}
{"Action":"skip","Package":"a/empty"}
`
	var out strings.Builder
	r := &results{out: &out, running: map[string]*running{}}
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	if r.packages != 3 || r.passed != 276 || r.skipped != 3 ||
		!slices.Equal(r.failed, []string{"a/specs", "a/broken"}) {
		t.Errorf("%d packages, %d passed, %d skipped, failed %v; want 3, 276, 3, [a/specs a/broken]",
			r.packages, r.passed, r.skipped, r.failed)
	}
	for _, want := range []string{"ok    a/good", "a.go:1: undefined", "TestSpecs\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q was not printed:\n%s", want, out.String())
		}
	}
	if err := r.read(strings.NewReader("not JSON")); err == nil {
		t.Error("text that is not JSON is no error")
	}
}
