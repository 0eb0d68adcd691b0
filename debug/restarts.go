package debug

import (
	"sync"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/gather"
)

// restarts counts the lists and watches of informers after the first ones. Attempts that fail count
// with the one that succeeds.
type restarts struct {
	mu   sync.Mutex             // guards the rest
	last map[listWatch]attempts // when they were last not failing
	sums map[string]attempts    // by the informer's name
}

// listWatch names the list and watch of one namespace; of an informer that has one alone, the
// namespace is "".
type listWatch struct{ informer, namespace string }

// attempts are numbers of lists and watches that were begun.
type attempts struct{ lists, watches uint64 }

// add counts what was begun since the last call. It returns the sum of each informer, by its name,
// and forgets informers that are gone.
func (r *restarts) add(informers []gather.Informer) map[string]attempts {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, sums := map[listWatch]attempts{}, map[string]attempts{}
	for _, i := range informers {
		sum := r.sums[i.Name]
		watches := i.Health.Namespaces
		if len(watches) == 0 {
			watches = map[string]health.Watch{"": i.Health.Watch}
		}
		for namespace, w := range watches {
			of := listWatch{i.Name, namespace}
			before, known := r.last[of]
			switch {
			case w.Failures == 0:
				last[of] = attempts{w.Lists, w.Watches}
				sum.lists += anew(before.lists, w.Lists)
				sum.watches += anew(before.watches, w.Watches)
			case known:
				last[of] = before
			}
		}
		sums[i.Name] = sum
	}
	r.last, r.sums = last, sums
	return sums
}

// anew returns how many more there are than before. The first ones do not count, and neither do
// those of another informer that has taken the name.
func anew(before, now uint64) uint64 {
	if before == 0 || now < before {
		return 0
	}
	return now - before
}
