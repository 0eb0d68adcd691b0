package listwatch

import (
	"sync/atomic"

	"github.com/tidings-go/tidings/delta"
)

// Versions decides whether the resource versions of a source order its states. The
// zero value trusts them until something shows that they do not.
type Versions struct {
	distrusted atomic.Bool
}

// Compare orders two versions as delta.CompareDecimal does; ok is false for all of
// them once they are not trusted.
func (v *Versions) Compare(a, b string) (order int, ok bool) {
	if v.distrusted.Load() {
		return 0, false
	}
	return delta.CompareDecimal(a, b)
}

// Trusted reports whether versions are compared.
func (v *Versions) Trusted() bool { return !v.distrusted.Load() }

// Distrust ends the comparing of versions for good.
func (v *Versions) Distrust() { v.distrusted.Store(true) }

// sawListed takes note of an object in a list.
func (v *Versions) sawListed(object, list string) {
	if order, ok := delta.CompareDecimal(object, list); !ok || order > 0 {
		v.Distrust()
	}
}

// sawEvent takes note of an event of a watch after another, or after the version at
// which the watch began.
func (v *Versions) sawEvent(event, before string) {
	if order, ok := delta.CompareDecimal(event, before); !ok || order <= 0 {
		v.Distrust()
	}
}
