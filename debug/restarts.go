package debug

import (
	"sync"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/gather"
)

// restarts counts the lists and watches of informers after the first ones. Attempts that fail count
// with the one that succeeds.
type restarts struct {
	mu       sync.Mutex             // guards the rest
	last     map[listWatch]attempts // when they were last not failing
	restarts map[string]attempts    // by the informer's name
}

// listWatch names the list and watch of one namespace; of an informer that has one alone, the
// namespace is "".
type listWatch struct{ informer, namespace string }

// attempts are numbers of lists and watches that were begun.
type attempts struct{ lists, watches uint64 }

// add counts up to now, and forgets what is gone. It returns the numbers by the informer's name.
func (r *restarts) add(informers []gather.Informer) map[string]attempts {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, all := map[listWatch]attempts{}, map[string]attempts{}
	for _, i := range informers {
		sum := r.restarts[i.Name]
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
		all[i.Name] = sum
	}
	r.last, r.restarts = last, all
	return all
}

// anew returns how many more there are than before. The first ones do not count, and neither do
// those of another informer that has taken the name.
func anew(before, now uint64) uint64 {
	if before == 0 || now < before {
		return 0
	}
	return now - before
}
