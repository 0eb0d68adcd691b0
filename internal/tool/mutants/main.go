// Command mutants changes the engine in small ways, one at a time, and runs the tests against
// each changed program: a change that no test detects is a survivor.
//
//	packages ─▶ find ─▶ instrument ─▶ one test binary per suite ─▶ cover ─▶ sample ─▶ run
//
// In these steps:
//
//  1. find walks the syntax trees, with types, and lists the mutants of a package:
//     conditions negated, always or never true; operands of && and || ignored; < for <=,
//     + for -; integers one more; statements, calls, defers and fields of literals left out;
//     errors that are not returned; cases of switch and select that are never taken.
//     It skips statements that only log.
//  2. instrument writes all of them into copies of the files. Each is behind a condition that
//     the environment variable MUTANT turns on, so that one compilation is enough.
//     Mutants that do not compile are dropped. The go command takes the copies through
//     -overlay.
//  3. cover runs every test once, without a mutant, to measure its time and to record which
//     mutants would change it. Tests that fail then, or take more than six seconds of a
//     processor, are left out, and reported.
//  4. A random sample of the mutants is run: first the tests of the package, then those of
//     the other suites, the quick ones first, and only tests that the mutant changes.
//
// A mutant is killed if a test fails, or takes three times as long as without it and five
// seconds more. survivors.json lists survivors that change nothing that the contract promises,
// with the reason. They are identified by file, function, block and text. An entry that no
// longer is a mutant is an error.
//
// # Concurrency properties
//
// As many processes run as the machine has processors, each with one mutant.
//
// # Memory
//
// Each process is limited to 8 GiB of addresses.
package main

import (
	"context"
	"flag"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options are the choices of a run.
type options struct {
	dir      string        // the root of the module
	packages []string      // directories whose code is changed
	suites   []string      // directories whose tests run after those of the package
	sample   int           // how many mutants run; 0 is all
	seed     uint64        // of the sample
	parallel int           // processes
	slack    time.Duration // added to three times the time that tests take without a mutant
	known    string        // a file of survivors with reasons; "" is empty
}

func main() {
	log.SetFlags(log.Ltime)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := options{
		dir: ".", suites: []string{"contract", "tidingstest", "clientgo/cache", "flight"},
		parallel: runtime.NumCPU(), slack: 5 * time.Second, known: "internal/tool/mutants/survivors.json",
	}
	packages := flag.String("packages", strings.Join([]string{
		"store", "internal/engine/delta", "internal/engine/fanout", "internal/engine/reflector", "source",
		"internal/engine", ".", "clientgo/internal/sharedinformer",
	}, ","), "directories whose code is changed")
	flag.IntVar(&o.sample, "sample", 1000, "how many mutants run; 0 is all")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64()%1_000_000, "the seed of the sample")
	flag.Parse()
	o.packages = strings.Split(*packages, ",")
	r, err := run(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	r.write(os.Stdout)
	if len(r.with(survived))+len(r.with(uncovered))+len(r.stale) > 0 {
		os.Exit(1)
	}
}

// run finds the mutants, builds the suites and runs a sample.
func run(ctx context.Context, o options) (*report, error) {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	o.dir = dir
	known, err := readKnown(o.known)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	packages, err := load(ctx, o.dir, o.packages)
	if err != nil {
		return nil, err
	}
	overlay, err := instrumentAll(packages, work)
	if err != nil {
		return nil, err
	}
	var all []*mutant
	for _, p := range packages {
		for _, f := range p.files {
			all = append(all, f.mutants...)
		}
	}
	log.Printf("%d mutants in %d packages", len(all), len(packages))
	suites, err := buildSuites(ctx, o, work, overlay)
	if err != nil {
		return nil, err
	}
	r := &report{seed: o.seed, found: len(all), stale: known.stale(all)}
	for _, s := range suites {
		failing, err := s.cover(ctx, o.parallel)
		if err != nil {
			return nil, err
		}
		r.leftOut = append(r.leftOut, failing...)
	}
	r.results, err = runAll(ctx, o, suites, pick(all, o), known)
	return r, err
}

// pick draws the sample.
func pick(all []*mutant, o options) []*mutant {
	some := slices.Clone(all)
	random := rand.New(rand.NewPCG(o.seed, 0))
	random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	if o.sample > 0 && o.sample < len(some) {
		some = some[:o.sample]
	}
	return some
}
