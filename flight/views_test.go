package flight_test

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/source"
)

// dataView is a view of config maps, nameView one with metadata alone, and binaryView another one.
type dataView struct {
	tidings.Meta `json:"metadata"`
	Data         map[string]string `json:"data"`
}

type nameView struct {
	tidings.Meta `json:"metadata"`
}

type binaryView struct {
	tidings.Meta `json:"metadata"`
	BinaryData   map[string][]byte `json:"binaryData"`
}

// TestV4_RecordingsOfViews records views, whose oldest records are gone, and replays them as those
// views.
func TestV4_RecordingsOfViews(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	checked := func(f *tidings.Factory) (*tidings.Informer[*dataView], error) {
		return tidings.View[*dataView, *corev1.ConfigMap](f, tidings.Selection{})
	}
	unchecked := func(f *tidings.Factory) (*tidings.Informer[*dataView], error) {
		return tidings.UncheckedView[*dataView](f, kind, tidings.Selection{})
	}
	names := func(f *tidings.Factory) (*tidings.Informer[*nameView], error) {
		return tidings.View[*nameView, *corev1.ConfigMap](f, tidings.Selection{})
	}
	n := func(v *dataView) string { return v.Data["n"] }
	t.Run("protobuf", func(t *testing.T) {
		recordView(t, checked, new(corev1.ConfigMap), []string{"metadata", "data"}, n)
	})
	t.Run("unchecked", func(t *testing.T) {
		recordView(t, unchecked, nil, []string{"metadata", "data"}, n)
	})
	t.Run("metadata", func(t *testing.T) {
		recordView(t, names, new(corev1.ConfigMap), []string{"metadata"}, (*nameView).GetResourceVersion)
	})
}

func recordView[T tidings.Object](
	t *testing.T, ask func(*tidings.Factory) (*tidings.Informer[T], error), whole runtime.Object,
	fields []string, content func(T) string,
) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, server: apisim.Start(t)}
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
		}
		var err error
		w.recorder, err = flight.New(flight.Options{MaxAge: time.Minute, Logger: quiet})
		w.must(err)
		transport := calm
		transport.Recorder = w.recorder
		w.factory, err = tidings.NewFactory(w.server.Config(), tidings.FactoryOptions{
			Transport: transport, Logger: quiet,
		})
		w.must(err)
		i, err := ask(w.factory)
		w.must(err)
		follow(w, i)
		w.must(w.factory.Start(t.Context()))
		w.must(w.factory.WaitForSync(t.Context()))
		w.update("a", 30)
		time.Sleep(time.Minute)
		w.update("a", 7)
		w.delete("c")
		synctest.Wait()
		track := w.track()
		if !slices.Equal(track.View, fields) {
			t.Errorf("the track is of %q, want %q", track.View, fields)
		}
		if len(track.Base) != 3 {
			t.Errorf("the base is %v: the test proves little", track.Base)
		}
		contents := func(i *tidings.Informer[T]) map[string]string {
			all := map[string]string{}
			for key, object := range i.Lister().All() {
				all[key] = content(object)
			}
			return all
		}
		empty := func() T { return newOf[T]() }
		played, err := source.Replay(track, empty, source.ReplayOptions{Speed: math.Inf(1), Whole: whole})
		w.must(err)
		again, err := tidings.NewInformer(played, tidings.InformerOptions[T]{Transport: calm, Logger: quiet})
		w.must(err)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go again.Run(ctx) //nolint:errcheck // it ends with the test
		<-played.Done()
		synctest.Wait()
		got, want := statesOf(again), statesOf(i)
		if !maps.Equal(got, want) {
			t.Errorf("after the replay %v, recorded %v", got, want)
		}
		if got, want := contents(again)["default/a"], contents(i)["default/a"]; got != want {
			t.Errorf("after the replay a has %q, recorded %q", got, want)
		}
		_, err = source.Replay(track, func() *binaryView { return new(binaryView) },
			source.ReplayOptions{Whole: whole})
		if err == nil || !strings.Contains(err.Error(), `declares "binaryData"`) {
			t.Errorf("the replay as another view: %v", err)
		}
		if whole != nil && len(fields) > 1 {
			replay(w, track, newConfigMap, calm, math.Inf(1))
		}
		if len(fields) > 1 {
			replayNames(w, track, whole, want)
		}
	})
}

// newOf returns a new value of the struct that T points to.
func newOf[T tidings.Object]() T {
	var none T
	switch any(none).(type) {
	case *dataView:
		return any(new(dataView)).(T)
	default:
		return any(new(nameView)).(T)
	}
}

// replayNames replays a track as a view with metadata alone.
func replayNames(w *world, track *flight.Track, whole runtime.Object, want map[string]string) {
	w.Helper()
	played, err := source.Replay(track, func() *nameView { return new(nameView) },
		source.ReplayOptions{Speed: math.Inf(1), Whole: whole})
	w.must(err)
	again, err := tidings.NewInformer(played, tidings.InformerOptions[*nameView]{Transport: calm, Logger: quiet})
	w.must(err)
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	go again.Run(ctx) //nolint:errcheck // it ends with the test
	<-played.Done()
	synctest.Wait()
	if got := statesOf(again); !maps.Equal(got, want) {
		w.Errorf("as names %v, recorded %v", got, want)
	}
}
