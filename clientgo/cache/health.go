package cache

import "github.com/tidings-go/tidings"

// HealthOf returns the health of an informer and its handlers: its state, the time at which the
// state began, the last error, and the backlog of each handler. ok is false for informers of
// other modules. A wrapper of an informer must forward GetStore.
func HealthOf(informer SharedInformer) (health tidings.Health, ok bool) {
	of, ok := informer.GetStore().(interface{ Health() tidings.Health })
	if !ok {
		return tidings.Health{}, false
	}
	return of.Health(), true
}
