package cache

import "github.com/tidings-go/tidings"

// HealthOf says how an informer and its handlers are: what it is doing, since when, the
// last error, how far behind each handler is. It knows informers of this module, also
// within a wrapper that passes on GetStore; ok is false for others.
func HealthOf(informer SharedInformer) (health tidings.Health, ok bool) {
	of, ok := informer.GetStore().(interface{ Health() tidings.Health })
	if !ok {
		return tidings.Health{}, false
	}
	return of.Health(), true
}
