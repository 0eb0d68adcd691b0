package listwatch

import (
	"sync/atomic"

	"github.com/tidings-go/tidings/delta"
	"github.com/tidings-go/tidings/source"
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

// uniqueAmong is how many objects of a page are compared with each other.
const uniqueAmong = 64

// sawPage takes note of a page of a list.
func (v *Versions) sawPage(page *source.Page[any]) {
	seen := make(map[string]bool, min(len(page.Items), uniqueAmong))
	for i := range page.Items {
		version := page.Items[i].Version
		if page.Items[i].Err != nil {
			continue
		}
		order, ok := delta.CompareDecimal(version, page.Version)
		if !ok || order > 0 || version == "0" || seen[version] {
			v.Distrust()
			return
		}
		if i < uniqueAmong {
			seen[version] = true
		}
	}
}

// sawEvent takes note of an event of a watch after another, or after the version at
// which the watch began.
func (v *Versions) sawEvent(event, before string) {
	if order, ok := delta.CompareDecimal(event, before); !ok || order <= 0 {
		v.Distrust()
	}
}
