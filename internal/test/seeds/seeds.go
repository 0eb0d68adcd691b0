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
	Count *int    // how many run, from 1 on
	One   *uint64 // the only one to run, 0 for Count
}

// New defines the flags of a test: name.seeds and name.seed. count is how many seeds run
// where neither a flag nor the environment says so.
func New(name, test string, count int) Flags {
	variable := "TIDINGS_" + strings.ToUpper(name) + "_SEEDS"
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil && n > 0 {
		count = n
	}
	return Flags{
		Count: flag.Int(name+".seeds", count, "how many seeds "+test+" runs ("+variable+")"),
		One:   flag.Uint64(name+".seed", 0, "the one seed to run, as a failure printed it"),
	}
}

// All yields the seeds to run.
func (f Flags) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if *f.One != 0 {
			yield(*f.One)
			return
		}
		for i := range *f.Count {
			if !yield(uint64(i + 1)) {
				return
			}
		}
	}
}
