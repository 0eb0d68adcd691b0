package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/source"
)

type demoType struct {
	of       view.Type
	resource schema.GroupVersionResource
	waitFor  func(ctx context.Context, version string) error
	health   func() tidings.Health
	handler  func() tidings.HandlerHealth
	cached   func() map[string]tidings.Object
}

func addType[T tidings.Object](d *demonstration, kind schema.GroupVersionKind) error {
	informer, err := tidings.For[T](d.factory, tidings.Selection{})
	if err != nil {
		return err
	}
	plural, singular := meta.UnsafeGuessKindToResource(kind) // the demo's types have regular plurals
	t := demoType{
		of:       view.Type{Kind: kind, Singular: singular.Resource, Plural: plural.Resource},
		resource: plural, waitFor: informer.WaitFor, health: informer.Health,
		cached: func() map[string]tidings.Object {
			objects := make(map[string]tidings.Object)
			for key, obj := range informer.Lister().All() {
				objects[key] = obj
			}
			return objects
		},
	}
	registration, err := informer.AddHandler(view.Handler[T](t.of, d.receive),
		tidings.HandlerOptions{Name: "print"})
	if err != nil {
		return err
	}
	t.handler = registration.Health
	d.types = append(d.types, t)
	return nil
}

// maxNamed is the largest number of differences that a comparison names.
const maxNamed = 3

// comparison is the result of comparing caches and server.
type comparison struct {
	objects, types int // on the server
	differences    []string
}

// String describes the result.
func (c comparison) String() string {
	if len(c.differences) == 0 {
		return fmt.Sprintf("the caches and the events of the handlers match the server: %s of %s",
			format.Counted(c.objects, "object", "objects"), format.Counted(c.types, "type", "types"))
	}
	return fmt.Sprintf("the caches and the server differ in %s: %s",
		format.Counted(len(c.differences), "place", "places"),
		strings.Join(c.differences[:min(maxNamed, len(c.differences))], "; "))
}

func (c comparison) err() error {
	if len(c.differences) == 0 {
		return nil
	}
	return errors.New(c.String())
}

// compare compares each object of the server with its cache, and the numbers of objects with
// those of the handlers' events.
func (d *demonstration) compare(ctx context.Context) (comparison, error) {
	found := comparison{types: len(d.types)}
	differ := func(format string, args ...any) {
		found.differences = append(found.differences, fmt.Sprintf(format, args...))
	}
	counts := d.printer.tally.Counts()
	for i, t := range d.types {
		served, _, err := d.server.List(ctx, t.resource, "")
		if err != nil {
			return found, err
		}
		found.objects += len(served)
		if live := counts[i].Live(); live != int64(len(served)) {
			differ("the handler's events leave %d %s, the server has %d", live, t.of.Plural, len(served))
		}
		cached := t.cached()
		for _, item := range served {
			obj := item.(tidings.Object)
			key := source.Key(obj.GetNamespace(), obj.GetName())
			copied, ok := cached[key]
			delete(cached, key)
			switch {
			case !ok:
				differ("%s %s is not cached", t.of.Singular, key)
			case obj.GetResourceVersion() != copied.GetResourceVersion():
				differ("%s %s is cached at version %s, the server has %s",
					t.of.Singular, key, copied.GetResourceVersion(), obj.GetResourceVersion())
			case !sameContent(item, copied.(runtime.Object)):
				differ("%s %s is cached with other content", t.of.Singular, key)
			}
		}
		for key := range cached {
			differ("%s %s is cached, but the server has deleted it", t.of.Singular, key)
		}
	}
	return found, nil
}

// sameContent compares two objects without the kinds that they may carry.
func sameContent(a, b runtime.Object) bool {
	a, b = a.DeepCopyObject(), b.DeepCopyObject()
	a.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	b.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return equality.Semantic.DeepEqual(a, b)
}

func (d *demonstration) summarise(lasted time.Duration, found comparison) {
	p := d.screen.Palette()
	var folded uint64
	for _, t := range d.types {
		folded += t.handler().Folded
	}
	counts, note := d.lag.Counts(), ""
	seen := fmt.Sprintf("%s made, %s seen", format.Int(counts.Written),
		format.Int(counts.Seen))
	if folded > 0 {
		seen += fmt.Sprintf("; %s folded into later ones, because the output was slow",
			format.Counted(folded, "update", "updates"))
	}
	if d.faults != nil {
		seen += "; faults have undone or hidden the others"
		note = ", faults included"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s after %s\n%s", p.Dim("──"), format.Short(lasted),
		view.Table(d.printer.tally.Counts(), p))
	row := func(name, text string) {
		fmt.Fprintf(&b, "  %s %s\n", p.Dim(fmt.Sprintf("%-10s", name)), text)
	}
	row("changes", seen)
	if counts.Seen > 0 {
		row("lag", fmt.Sprintf("half within %s, 99 of 100 within %s, %s at most, write to handler%s",
			format.Short(d.lag.Quantile(0.5)), format.Short(d.lag.Quantile(0.99)),
			format.Short(d.lag.Quantile(1)), note))
	}
	if d.faults != nil {
		row("faults", strconv.Itoa(d.faults.happened))
	}
	row("first sync", fmt.Sprintf("%s in %s", format.Counted(d.initial, "object", "objects"),
		format.Short(d.synced)))
	row("peak heap", format.Bytes(d.peak)+", including the server in this process")
	paint := p.Green
	if len(found.differences) > 0 {
		paint = p.Red
	}
	row("comparison", paint(found.String()))
	d.screen.Print(b.String()) //nolint:errcheck // there is nothing left to stop
}
