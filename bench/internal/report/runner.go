package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/tidings-go/tidings/bench/internal/stack"
	"github.com/tidings-go/tidings/bench/internal/work"
)

// Runner runs cases. All fields are required.
type Runner struct {
	// Program is the path of the program whose sub-commands are Worker and Server.
	Program string
	// Size is the size of the workloads, Runs how often each case runs on each stack.
	Size work.Size
	Runs int
	// Only says which cases run, by name; nil means all.
	Only *regexp.Regexp
	// Progress is told what runs.
	Progress io.Writer
}

// Report is what a Runner has measured.
type Report struct {
	// Cases are the cases in their order.
	Cases []Result
	// Runs is how often each ran on each stack, Took how long all of it took.
	Runs int
	Took time.Duration
}

// Result is what was measured of one case.
type Result struct {
	// Case is the case.
	Case work.Case
	// Rows are its metrics, in the order in which the first stack had them.
	Rows []*Row
}

// Row is one metric of a case.
type Row struct {
	// Metric is the metric; its value means nothing.
	Metric work.Metric
	// Samples are the values of the runs by stack.
	Samples map[string][]float64
}

// Run runs all cases. Cases that failed are joined in the error; the report has the rest.
func (r Runner) Run(ctx context.Context) (report Report, err error) {
	begin := time.Now()
	report.Runs = r.Runs
	var server *serving
	defer func() {
		report.Took = time.Since(begin)
		err = errors.Join(err, server.stop())
	}()
	var failures []error
	for _, w := range work.All() {
		for _, c := range w.Cases(r.Size) {
			if r.Only != nil && !r.Only.MatchString(c.String()) {
				continue
			}
			if c.Server != nil && !server.is(*c.Server) {
				if err := server.stop(); err != nil {
					return report, err
				}
				server = nil
				if server, err = serve(ctx, r.Program, *c.Server); err != nil {
					return report, err
				}
			}
			result, err := r.runCase(ctx, c, server)
			if ctx.Err() != nil {
				return report, context.Cause(ctx)
			}
			failures = append(failures, err)
			report.Cases = append(report.Cases, result)
		}
	}
	return report, errors.Join(failures...)
}

// runCase runs one case on all stacks, in turns.
func (r Runner) runCase(ctx context.Context, c work.Case, s *serving) (Result, error) {
	result := Result{Case: c}
	rows := map[string]*Row{}
	var failures []error
	job := Job{Case: c}
	if c.Server != nil {
		job.URL = s.url
	}
	stacks := stack.All()
	failed := map[string]bool{}
	for run := range r.Runs {
		for turn := range stacks {
			job.Stack = stacks[(run+turn)%len(stacks)].Name()
			if failed[job.Stack] || !c.RunsOn(stacks[(run+turn)%len(stacks)]) {
				continue
			}
			begin := time.Now()
			metrics, err := runJob(ctx, r.Program, job)
			if ctx.Err() != nil {
				return result, context.Cause(ctx)
			}
			if err != nil {
				failed[job.Stack] = true
				failures = append(failures, err)
			}
			if _, err := fmt.Fprintf(r.Progress, "%s, run %d of %d, %s: %.1fs\n", c, run+1, r.Runs, job.Stack, time.Since(begin).Seconds()); err != nil {
				return result, err
			}
			for _, m := range metrics {
				row := rows[m.Name]
				if row == nil {
					row = &Row{Metric: m, Samples: map[string][]float64{}}
					rows[m.Name] = row
					result.Rows = append(result.Rows, row)
				}
				row.Samples[job.Stack] = append(row.Samples[job.Stack], m.Value)
			}
		}
	}
	return result, errors.Join(failures...)
}

// sample returns the values of a stack, nil if there are none.
func (r *Row) sample(stack string) *benchmath.Sample {
	values := r.Samples[stack]
	if len(values) == 0 {
		return nil
	}
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}
