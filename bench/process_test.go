package bench

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/perf/benchfmt"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

var (
	size = flag.String("size", "quick", "how much benchmarks do: full is for results, quick "+
		"for a look, tiny for tests")
	processes = flag.Bool("processes", true, "run each benchmark in a process of its own")
)

// workerURL is the environment variable of workers: the address of the server, or empty.
const workerURL = "TIDINGS_BENCH_WORKER"

// workerLimit bounds the time of a worker.
const workerLimit = 15 * time.Minute

// higher are the units of which more is better, for benchstat.
var higher = append([]string{
	"objects/s", "updates/s", "notifications/s", "reads/s", "beside-writer-reads/s",
	"events-within-limit",
}, managerReads()...)

// TestMain makes each benchmark run once by default: it is long enough.
func TestMain(m *testing.M) {
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		panic(err)
	}
	flag.Parse()
	klog.SetLogger(klog.Logger{}) // client-go logs every watch that ends
	log.SetLogger(logr.Discard())
	_, worker := os.LookupEnv(workerURL)
	if f := flag.Lookup("test.bench"); !worker && f.Value.String() != "" {
		for _, unit := range higher {
			fmt.Printf("Unit %s better=higher\n", unit)
		}
	}
	os.Exit(m.Run())
}

// pick returns the value for the size of the benchmarks.
func pick[T any](tiny, quick, full T) T {
	switch *size {
	case "tiny":
		return tiny
	case "quick":
		return quick
	case "full":
		return full
	}
	panic("-size is one of tiny, quick and full")
}

// onStacks runs a benchmark on each stack. If there are specs, this process serves them, and the
// target has the first one.
func onStacks(
	b *testing.B, name string, specs []server.Spec, stacks []stack.Stack,
	f func(b *testing.B, s stack.Stack, t stack.Target),
) {
	b.Run(name, func(b *testing.B) {
		url, worker := os.LookupEnv(workerURL)
		var encoded []*server.Encoded
		for _, spec := range specs {
			if worker {
				break
			}
			e, err := server.Encode(spec)
			if err != nil {
				b.Fatal(err)
			}
			encoded = append(encoded, e)
		}
		for _, s := range stacks {
			b.Run("stack="+s.Name, func(b *testing.B) {
				for b.Loop() {
					t := stack.Target{URL: url}
					if len(encoded) > 0 {
						served := httptest.NewServer(server.Handler(encoded...))
						b.Cleanup(served.Close)
						t.URL = served.URL
					}
					if len(specs) > 0 {
						t.Spec = specs[0]
					}
					if worker || !*processes {
						f(b, s, t)
					} else {
						runWorker(b, t)
					}
				}
				b.ReportMetric(0, "ns/op") // hides the time of the process
			})
		}
	})
}

// runWorker runs a benchmark in a process of its own and reports its metrics.
func runWorker(b *testing.B, t stack.Target) {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var pattern []string
	for element := range strings.SplitSeq(b.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(element)+"$")
	}
	ctx, cancel := context.WithTimeout(b.Context(), workerLimit)
	defer cancel()
	command := exec.CommandContext(ctx, program, "-test.run", "^$", "-test.bench",
		strings.Join(pattern, "/"), "-size", *size)
	command.Env = append(os.Environ(), workerURL+"="+t.URL, stack.Environment(t.Paged))
	output, err := command.CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, output)
	}
	results, err := parse(output)
	if err != nil || len(results) != 1 {
		b.Fatalf("%d results, want 1: %v\n%s", len(results), err, output)
	}
	for _, v := range results[0].Values {
		if v.OrigUnit != "" {
			v.Value, v.Unit = v.OrigValue, v.OrigUnit
		}
		b.ReportMetric(v.Value, v.Unit)
	}
}

// parse reads the results of benchmarks.
func parse(output []byte) (results []*benchfmt.Result, err error) {
	reader := benchfmt.NewReader(bytes.NewReader(output), "output")
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			results = append(results, r.Clone())
		case *benchfmt.SyntaxError:
			err = errors.Join(err, r)
		}
	}
	return results, errors.Join(err, reader.Err())
}
