package written

import (
	"cmp"

	"github.com/tidings-go/tidings/internal/delta"
)

// shown is what a cache shows before the server is asked about an object.
type shown struct {
	by                    Cache
	object                string
	reached, version, uid string // version is "" without the object
}

func shownBy(by Cache, object string) shown {
	s := shown{by: by, object: object}
	namespace, _ := SplitKey(object)
	s.reached, _ = by.Reached(namespace)
	s.version, s.uid, _ = by.Received(object)
	return s
}

// compareObject tells the cache if a later read has shown a state of the object that its history cannot have.
func (s shown) compareObject(version, uid string) {
	order, ok := delta.CompareDecimal(version, s.version)
	before, passed := delta.CompareDecimal(version, s.reached)
	switch {
	case ok && (order < 0 || order == 0 && Another(uid, s.uid)):
		s.by.SuspectWatch(s.object, s.version, s.uid)
	case ok && order > 0 && passed && before < 0 && !s.by.Selects(): // nothing has changed it up to reached
		s.by.SuspectWatch(s.object, s.reached, cmp.Or(uid, s.uid))
	}
}

// compare tells the cache if a later read has shown a version of the collection that its history cannot have.
func (s shown) compare(version string) {
	if order, ok := delta.CompareDecimal(version, s.reached); ok && order < 0 {
		s.by.SuspectWatch(s.object, s.reached, "")
	}
}

// Newest tells a cache if a consistent list of a namespace, which ask makes, has shown a version that its
// history cannot have, and returns the version.
func Newest(by Cache, namespace string, ask func() (string, error)) (string, error) {
	before := shownBy(by, namespace+"/")
	version, err := ask()
	if err == nil {
		before.compare(version)
	}
	return version, err
}
