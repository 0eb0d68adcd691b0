package cli

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// maxDifferences is how many differences are named.
const maxDifferences = 3

// agreement is what a comparison of caches and server found.
type agreement struct {
	objects int // on the server
	types   int
	differ  int
	named   []string // the first differences
}

// String says whether they agree.
func (a agreement) String() string {
	if a.differ == 0 {
		return fmt.Sprintf("the caches equal the server, and so does what the handlers were told: %s of %s",
			view.Counted(int64(a.objects), "object", "objects"), view.Counted(int64(a.types), "type", "types"))
	}
	return fmt.Sprintf("the caches and the server differ in %s: %s", view.Counted(int64(a.differ), "place", "places"), strings.Join(a.named, "; "))
}

func (a agreement) err() error {
	if a.differ == 0 {
		return nil
	}
	return fmt.Errorf("%s", a)
}

func (a *agreement) note(format string, args ...any) {
	a.differ++
	if len(a.named) < maxDifferences {
		a.named = append(a.named, fmt.Sprintf(format, args...))
	}
}

// compare lists every type and compares it with its cache, object by object, and with
// what the handler was told.
func (d *demonstration) compare(ctx context.Context) (agreement, error) {
	found := agreement{types: len(d.mirrors)}
	told := d.tally.Counts()
	for i, m := range d.mirrors {
		served, _, err := d.server.List(ctx, m.resource)
		if err != nil {
			return found, err
		}
		found.objects += len(served)
		if live := told[i].Live(); live != int64(len(served)) {
			found.note("the handler was told of %d %s, the server has %d", live, m.of.Plural, len(served))
		}
		for key, cached := range m.all() {
			obj, ok := served[key]
			delete(served, key)
			switch {
			case !ok:
				found.note("%s %s is cached and gone from the server", m.of.Singular, key)
			case obj.GetResourceVersion() != cached.GetResourceVersion():
				found.note("%s %s is cached at version %s, the server has %s", m.of.Singular, key, cached.GetResourceVersion(), obj.GetResourceVersion())
			case !sameContent(obj, cached):
				found.note("%s %s is cached with another content", m.of.Singular, key)
			}
		}
		for key := range served {
			found.note("%s %s is not cached", m.of.Singular, key)
		}
	}
	return found, nil
}

// sameContent compares two objects but for the kind that they may carry.
func sameContent(a, b tidings.Object) bool {
	a, b = a.DeepCopyObject().(tidings.Object), b.DeepCopyObject().(tidings.Object)
	a.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	b.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return equality.Semantic.DeepEqual(a, b)
}
