package controllers

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
)

// rate is that of the changes at which CPU is compared, a second.
const rate = 10_000

// emptyCalls measures calls that do nothing: a change of each object leads to one. The changes
// come as fast as the program takes them, and then at a rate.
func emptyCalls(t *testing.T) []cost {
	n := pick(500, 10_000, 50_000)
	fast := cost{"changes that lead to an empty call", "≥ 2 ×", map[string]string{}}
	allocs := cost{"allocations of one", "", map[string]string{}}
	paced := cost{"CPU of one, 10,000 a second", "≤ 1/2", map[string]string{}}
	for _, s := range threeStacks {
		t.Run(s.name, func(t *testing.T) {
			used := emptyCallsOf(t, s, n, 0)
			fast.figures[s.name] = fmt.Sprintf("%.0f a second", float64(n)/used.Wall.Seconds())
			allocs.figures[s.name] = fmt.Sprintf("%.0f", used.Allocs/float64(n))
		})
		t.Run(s.name+"/paced", func(t *testing.T) {
			used := emptyCallsOf(t, s, n, rate)
			paced.figures[s.name] = fmt.Sprintf("%.1f µs, %.0f calls a second",
				float64(used.CPU.Microseconds())/float64(n), float64(n)/used.Wall.Seconds())
		})
	}
	return []cost{fast, allocs, paced}
}

// emptyCallsOf returns the usage of a program for one change of each of n objects.
func emptyCallsOf(t *testing.T, s stack, n, rate int) measure.Usage {
	config := served{Encoded: &server.Spec{
		Kind: objects.Deployments, Objects: n, Updates: n, Rate: rate, Encoding: server.Protobuf,
	}}.start(t)
	var calls atomic.Int64
	listed, changed := make(chan struct{}), make(chan struct{})
	start(t, program{name: "empty", workers: 4, call: func(
		context.Context, string, *appsv1.Deployment, client,
	) (time.Duration, error) {
		switch calls.Add(1) {
		case int64(n):
			close(listed)
		case int64(2 * n):
			close(changed)
		}
		return 0, nil
	}}, func(ctx context.Context, p program) error { return s.main(ctx, config, p) })
	await(t, listed, "the objects of the first list have no calls")
	measure.LiveHeap() // collects the garbage of the list
	used := measure.Of(t, func() {
		post(t, config.Host+"/updates")
		await(t, changed, "the changes have no calls")
	})
	if least := 0.9 * float64(n); rate > 0 && used.Wall.Seconds()*float64(rate) < least {
		t.Errorf("%d changes came in %v, want %d a second", n, used.Wall, rate)
	}
	return used
}

// post asks the server for something.
func post(t *testing.T, url string) {
	t.Helper()
	response, err := http.Post(url, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s", url, response.Status)
	}
}
