package simulation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/tidingstest"
)

// Frames and lists that an Inflate makes larger than this are refused.
const (
	nativeFrameLimit = 8 << 10
	nativeListLimit  = 32 << 10
)

// nativeOptions choose how an informer of the native API lists and watches.
func nativeOptions(w *world) tidings.FactoryOptions {
	return tidings.FactoryOptions{Logger: w.printed.Logger(), Transport: tidings.Transport{
		NoStreamedLists: w.random.IntN(3) == 0, PageSize: int64(1 + w.random.IntN(6)),
		WatchTimeout:  w.between(240, 300),
		MaxFrameBytes: nativeFrameLimit, MaxListBytes: nativeListLimit,
		Recorder: w.recorder(),
	}}
}

// recorder returns the recorder of one informer in four, nil for the others.
func (w *world) recorder() source.Recorder {
	if w.random.IntN(4) > 0 {
		return nil
	}
	return newRecorder(w)
}

func newRecorder(w *world) *flight.Recorder {
	return made(flight.New(flight.Options{MaxBytes: 1 << 20}))(w)
}

// native returns a function that starts an informer of the native API, with a factory of its
// own.
func native[T tidings.Object](
	ask func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error),
) func(*world, *subject) informer {
	return func(w *world, s *subject) informer {
		o := nativeOptions(w)
		if s.scope.resource == secretsOf {
			o.Transport.Recorder = newRecorder(w) // its recording is searched
		}
		factory := made(tidings.NewFactory(w.config(s.kind), o))(w)
		selection := tidings.Selection{Slots: s.scope.selected(), Optional: s.optional}
		if s.scope.hides {
			selection.Labels = "n!=" + hidden
		}
		if s.scope.name != "" {
			selection.Fields = "metadata.name=" + s.scope.name
		}
		if s.code != nil || s.strips || s.refuses {
			selection.Transform = tidings.NewTransform(transform[T](s))
		}
		i := term(w, s, factory, func() (*tidings.Informer[T], error) {
			selection.Namespaces = s.scope.namespaces
			return ask(factory, selection)
		})
		i.recorder, _ = o.Transport.Recorder.(*flight.Recorder)
		return i
	}
}

// term asks for an informer and starts the factory.
func term[T tidings.Object](
	w *world, s *subject, factory *tidings.Factory, ask func() (*tidings.Informer[T], error),
) informer {
	w.Helper()
	i := made(ask())(w)
	all := made(tidingstest.Native(i, s.code.index))(w)
	ctx, cancel := context.WithCancel(context.Background())
	if err := factory.Start(ctx); err != nil {
		w.Fatal(err)
	}
	return informer{
		Informer: all,
		stop: func() error {
			cancel()
			return factory.Shutdown(context.Background())
		},
		// A leader that is elected again starts its factory anew.
		nextTerm: func() informer {
			cancel()
			if w.random.IntN(2) == 0 {
				i.Release()
			}
			return term(w, s, factory, ask)
		},
	}
}

func newTyped(
	f *tidings.Factory, s tidings.Selection,
) (*tidings.Informer[*corev1.ConfigMap], error) {
	return tidings.For[*corev1.ConfigMap](f, s)
}

func newSecrets(
	f *tidings.Factory, s tidings.Selection,
) (*tidings.Informer[*corev1.Secret], error) {
	return tidings.For[*corev1.Secret](f, s)
}

func newDynamic(
	f *tidings.Factory, s tidings.Selection,
) (*tidings.Informer[*unstructured.Unstructured], error) {
	return tidings.Dynamic(f, widgets, s)
}

// mapView and widgetView are views with a field that no object of the simulation has.
type mapView struct {
	tidings.Meta `json:"metadata"`
	Data         map[string]string `json:"data"`
}

type widgetView struct {
	tidings.Meta `json:"metadata"`
	Spec         struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func newView(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[*mapView], error) {
	return tidings.View[*mapView, *corev1.ConfigMap](f, s)
}

func newUncheckedView(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[*widgetView], error) {
	return tidings.UncheckedView[*widgetView](f, widgets.GroupVersion().WithKind("Widget"), s)
}

// secretView decodes the content of Secrets by a struct of the program.
type secretView struct {
	tidings.Meta `json:"metadata"`
	Data         map[string][]byte `json:"data"`
}

func newSecretView(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[*secretView], error) {
	return tidings.UncheckedView[*secretView](f, corev1.SchemeGroupVersion.WithKind("Secret"), s)
}

func newMetadata(
	f *tidings.Factory, s tidings.Selection,
) (*tidings.Informer[*metav1.PartialObjectMetadata], error) {
	return tidings.Metadata(f, configMaps, s)
}
