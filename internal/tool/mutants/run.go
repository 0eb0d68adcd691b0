package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"regexp"
	"slices"
	"sync"
	"time"
)

// verdict is the result of a mutant.
type verdict string

const (
	killed    verdict = "killed"
	timeout   verdict = "timeout" // killed: the tests took too long
	survived  verdict = "survived"
	uncovered verdict = "uncovered" // survived: no test reaches a state that it changes
	excused   verdict = "known"     // survived or uncovered, with a reason
)

// result is a mutant with its verdict.
type result struct {
	mutant
	Verdict verdict
}

// runAll runs the mutants of the sample.
func runAll(
	ctx context.Context, o options, suites []*suite, sample []*mutant, k known,
) ([]result, error) {
	var mu sync.Mutex // guards results
	var results []result
	began := time.Now()
	err := each(ctx, o.parallel, sample, func(ctx context.Context, m *mutant) error {
		r := result{*m, excused}
		if k[m.change] == "" {
			var err error
			if r.Verdict, err = m.run(ctx, o, suites); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if results = append(results, r); len(results)%50 == 0 {
			log.Printf("%d of %d mutants in %.0fs", len(results), len(sample), time.Since(began).Seconds())
		}
		return nil
	})
	slices.SortFunc(results, func(a, b result) int { return a.id - b.id })
	return results, err
}

// run runs the tests that reach m, those of its package first.
func (m *mutant) run(ctx context.Context, o options, suites []*suite) (verdict, error) {
	reached := false
	own := func(s *suite) bool { return s.dir == m.Package }
	others := func(s *suite) bool { return own(s) || !slices.Contains(o.suites, s.dir) }
	first := slices.DeleteFunc(slices.Clone(suites), func(s *suite) bool { return !own(s) })
	for _, s := range append(first, slices.DeleteFunc(slices.Clone(suites), others)...) {
		for _, tests := range s.batches(m.id) {
			reached = true
			limit := o.slack
			for _, t := range tests {
				limit += 3 * t.took
			}
			end, err := s.run(ctx, fmt.Sprint("MUTANT=", m.id), limit, tests...)
			switch {
			case err != nil:
				return "", err
			case !end.failed:
			case bytes.Contains(end.out, []byte("panic: test timed out")) || len(end.out) == 0:
				return timeout, nil
			default:
				return killed, nil
			}
		}
	}
	if !reached {
		return uncovered, nil
	}
	return survived, nil
}

var failureLine = regexp.MustCompile(`(?m)^(--- FAIL: \S+|panic: .*|fatal error: .*)`)

// reason returns the first line with a failure of the tests.
func reason(out []byte) string {
	return short(string(failureLine.Find(out)))
}
