package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	shopv1 "github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1"
)

// byColor is the index of widgets by their color.
var byColor = tidings.NewIndex("color", func(w *shopv1.Widget) []string { return []string{w.Spec.Color} })

// run prints the orders of every color, and those of a color again when they change,
// until ctx ends.
func run(ctx context.Context, config *rest.Config, out io.Writer) (err error) {
	// The scheme has the kinds of Go types. The discovery of the server has the resources of kinds.
	scheme := runtime.NewScheme()
	if err := shopv1.AddToScheme(scheme); err != nil {
		return err
	}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Scheme: scheme})
	if err != nil {
		return err
	}
	widgets, err := tidings.For[*shopv1.Widget](factory, tidings.Selection{})
	if err != nil {
		return err
	}
	if err := widgets.AddIndex(byColor); err != nil {
		return err
	}
	if err := factory.Start(ctx); err != nil {
		return err
	}
	// The informer stops with ctx; Shutdown waits until it has.
	defer func() { err = errors.Join(err, factory.Shutdown(context.WithoutCancel(ctx))) }()
	if err := factory.WaitForSync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted
		}
		return err
	}

	colors := map[string]bool{}
	for _, w := range widgets.Lister().All() {
		colors[w.Spec.Color] = true
	}
	printColors(widgets.Lister(), colors, out)
	for e, err := range widgets.Events(ctx) {
		if err != nil {
			return err
		}
		if e.Initial {
			continue
		}
		clear(colors)
		if e.Type != tidings.Added {
			colors[e.Old.Spec.Color] = true
		}
		if e.Type != tidings.Deleted {
			colors[e.New.Spec.Color] = true
		}
		fmt.Fprintf(out, "%s %s\n", e.Type, e.Key())
		printColors(widgets.Lister(), colors, out)
	}
	return nil
}

// printColors prints the orders of some colors.
func printColors(lister tidings.Lister[*shopv1.Widget], colors map[string]bool, out io.Writer) {
	for _, color := range slices.Sorted(maps.Keys(colors)) {
		var orders, pieces, made int64
		for _, w := range lister.ByIndex(byColor, color) {
			orders, pieces, made = orders+1, pieces+int64(w.Spec.Pieces), made+int64(w.Status.Made)
		}
		fmt.Fprintf(out, "  %s: %d orders, %d of %d pieces made\n", color, orders, made, pieces)
	}
}
