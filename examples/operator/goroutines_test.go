package main

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// leaving bounds the time until goroutines have ended after their stop.
const leaving = 30 * time.Second

// withoutLeaks calls f and fails the test if a goroutine that was started meanwhile stays behind.
// A goroutine has the labels of the one that started it, so others do not count.
func withoutLeaks(t *testing.T, f func()) {
	t.Helper()
	pprof.Do(t.Context(), pprof.Labels("started-by", t.Name()), func(context.Context) { f() })
	var left string
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, leaving, true, func(context.Context) (bool, error) {
		left = labeled(t, t.Name())
		return left == "", nil
	})
	if err != nil {
		t.Errorf("goroutines stay behind:\n%s", left)
	}
}

// labeled returns the stacks of the goroutines with a label.
func labeled(t *testing.T, label string) string {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	var found []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, `"started-by":"`+label+`"`) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}
