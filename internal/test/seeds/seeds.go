package seeds

import (
	"flag"
	"iter"
	"os"
	"strconv"
	"strings"
)

// Flags say which seeds a test runs.
type Flags struct {
	One *uint64 // the only one to run, 0 for Count

	count    *int
	variable string // of the environment
}

// New defines the flags of a test: name.seeds and name.seed. count is how many seeds run
// where neither a flag nor the environment says so.
func New(name, test string, count int) Flags {
	variable := "TIDINGS_" + strings.ToUpper(name) + "_SEEDS"
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil && n > 0 {
		count = n
	}
	return Flags{
		count:    flag.Int(name+".seeds", count, "how many seeds "+test+" runs ("+variable+")"),
		One:      flag.Uint64(name+".seed", 0, "the one seed to run, as a failure printed it"),
		variable: variable,
	}
}

// Count returns how many seeds run, from 1 on. The cache of go test notices that it reads the
// environment: it does not see what New has read, before the tests begin.
func (f Flags) Count() int {
	os.Getenv(f.variable)
	return *f.count
}

// All yields the seeds to run.
func (f Flags) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if *f.One != 0 {
			yield(*f.One)
			return
		}
		for i := range f.Count() {
			if !yield(uint64(i + 1)) {
				return
			}
		}
	}
}
