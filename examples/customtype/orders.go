package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	shopv1 "github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1"
)

// byColor is the index of widgets by their color.
const byColor = "color"

// run prints the orders of every color, and those of a color again when they change,
// until ctx ends.
func run(ctx context.Context, config *rest.Config, out io.Writer) (err error) {
	// The scheme says which type stands for which kind; the server's discovery says
	// which resource that is.
	scheme := runtime.NewScheme()
	if err := shopv1.AddToScheme(scheme); err != nil {
		return err
	}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Scheme: scheme, Logger: slog.Default()})
	if err != nil {
		return err
	}
	widgets, err := tidings.For[*shopv1.Widget](factory, tidings.Selection{})
	if err != nil {
		return err
	}
	err = widgets.AddIndex(byColor, func(w *shopv1.Widget) ([]string, error) { return []string{w.Spec.Color}, nil })
	if err != nil {
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
	if err := printColors(widgets.Lister(), colors, out); err != nil {
		return err
	}
	for e := range widgets.Events(ctx) {
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
		if err := printColors(widgets.Lister(), colors, out); err != nil {
			return err
		}
	}
	return nil
}

// printColors says what is ordered and made of some colors.
func printColors(lister tidings.Lister[*shopv1.Widget], colors map[string]bool, out io.Writer) error {
	for _, color := range slices.Sorted(maps.Keys(colors)) {
		found, err := lister.ByIndex(byColor, color)
		if err != nil {
			return err
		}
		var orders, pieces, made int64
		for _, w := range found {
			orders, pieces, made = orders+1, pieces+int64(w.Spec.Pieces), made+int64(w.Status.Made)
		}
		fmt.Fprintf(out, "  %s: %d orders, %d of %d pieces made\n", color, orders, made, pieces)
	}
	return nil
}
