package written

import (
	"cmp"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// compareObject tells the cache if a later read has shown a state of the object that its history
// cannot have.
func (s *state) compareObject(by Cache, key, version, uid string) {
	order, ok := delta.CompareDecimal(version, s.version)
	before, passed := delta.CompareDecimal(version, s.reached)
	switch {
	case ok && (order < 0 || order == 0 && Another(uid, s.uid)):
		by.SuspectWatch(key, s.version, s.uid)
	case ok && order > 0 && passed && before < 0 && !s.selects: // nothing has changed it up to reached
		by.SuspectWatch(key, s.reached, cmp.Or(uid, s.uid))
	}
}

// compare tells the cache if a later read has shown a version of the collection that its history
// cannot have.
func (s *state) compare(by Cache, key, version string) {
	if order, ok := delta.CompareDecimal(version, s.reached); ok && order < 0 {
		by.SuspectWatch(key, s.reached, "")
	}
}

// Newest tells a cache if a consistent list of a namespace, which ask makes, has shown a version
// that its history cannot have, and returns the version.
func Newest(by Cache, namespace string, ask func() (string, error)) (string, error) {
	key := namespace + "/"
	before := stateOf(by, key, "")
	version, err := ask()
	if err == nil {
		before.compare(by, key, version)
	}
	return version, err
}
