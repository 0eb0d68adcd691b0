// Command programs measures programs of others before and after they move to Tidings: memory, and
// processor time and time until they are ready.
//
//	go run ./programs                            # all, three rounds
//	go run ./programs -only 'karpenter|external' # those whose names match
//	go run ./programs -pods 2000 -rounds 1       # a look
//	go run ./programs -tests                     # the programs' own tests instead
//	go run ./programs -list
//
// Run it in the directory bench, on Linux, and run nothing else meanwhile. It prints the table of
// docs/reports/programs.md. What it does is logged to the standard error.
//
// A program is a Go module, which the go command downloads. Two copies of it require the modules of
// this repository and Kubernetes' modules in the version that this repository requires, or a later
// one of the program. In the copy "after", either client-go's imports are replaced, as
// docs/migrate.md says, or managers of controller-runtime have the option NewCache. Both copies get
// a file that prints the live heap at a signal, and a library gets a main package from testdata.
//
//	go mod download ─▶ copies ─▶ go build ─▶ before, after, before, after, … ─▶ median and range
//	                                            │ lists and watches
//	                                            ▼
//	                this process: pods that are encoded already; all else is apisim's
//
// Copies and programs stay in the user's cache directory, so that the go command reuses its builds.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	only         *regexp.Regexp
	pods, rounds int
	rest         time.Duration
	tests, list  bool
}

func main() {
	log.SetPrefix("programs: ")
	log.SetFlags(log.Ltime)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	only := flag.String("only", "", "a regular expression: the programs whose names match")
	flag.IntVar(&o.pods, "pods", 50_000, "the number of pods, and of replica sets")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each program runs in each variant")
	flag.DurationVar(&o.rest, "rest", 15*time.Second,
		"how long a program goes on when it is ready, before its memory is read")
	flag.BoolVar(&o.tests, "tests", false, "run the programs' own tests and measure nothing")
	flag.BoolVar(&o.list, "list", false, "list the programs and run none")
	flag.Parse()
	if o.pods < 1 || o.rounds < 1 || o.rest < 0 {
		log.Fatal("-pods and -rounds are at least 1, and -rest is not negative")
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		log.Fatalf("-only: %v", err)
	}
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	selected := slices.DeleteFunc(slices.Clone(programs), func(p program) bool {
		return !o.only.MatchString(p.name)
	})
	if len(selected) == 0 {
		return fmt.Errorf("no program matches %q; -list names them", o.only)
	}
	if o.list {
		for _, p := range selected {
			fmt.Println(p.name, p.module+"@"+p.version)
		}
		return nil
	}
	var all []*copies
	for _, p := range selected {
		c, err := prepare(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, c)
	}
	if o.tests {
		return testAll(ctx, all)
	}
	for _, c := range all {
		if err := c.build(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	log.Printf("%d pods are made", o.pods)
	s, err := serve(o.pods, all)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, c := range all {
		for round := range o.rounds {
			for _, v := range variants {
				f, err := c.measure(ctx, v, s, o)
				if err != nil {
					return fmt.Errorf("%s, %s, round %d: %w", c.name, v, round+1, err)
				}
				log.Printf("%s, %s: %v", c.name, v, f)
				c.results[v] = append(c.results[v], f)
			}
		}
	}
	fmt.Print(table(all))
	return nil
}

// variant is one of the two ways in which a program is built.
type variant string

const (
	before variant = "before"
	after  variant = "after"
)

var variants = []variant{before, after}

// home returns the directory of all copies.
func home() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "tidings", "programs"), err
}

// indent returns a text with two spaces before each line.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}
