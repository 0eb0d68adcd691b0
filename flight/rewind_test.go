package flight_test

import (
	"maps"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/internal/engine/tape"
)

// ringOnly is a recorder of a test.
type ringOnly struct{ ring *tape.Ring }

func (r ringOnly) Ring() *tape.Ring { return r.ring }

// TestRewindDoesNotWait has a recorder that takes a minute for the recording of a server that went
// back: the informer lists and watches meanwhile. Its end waits for the recording.
func TestRewindDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun, ended atomic.Int64
		o := tape.Options{MaxBytes: 1 << 20, MaxAge: time.Hour, OnEvent: func(reason, _ string) {
			if reason != tape.ReasonRewind {
				t.Errorf("an event because of %s", reason)
			}
			begun.Add(1)
			time.Sleep(time.Minute)
			ended.Add(1)
		}}
		w := &world{T: t, server: apisim.Start(t)}
		w.create("a")
		var err error
		options := tidings.FactoryOptions{Transport: calm, Logger: quiet}
		options.Transport.Recorder = ringOnly{tape.New(o)}
		w.factory, err = tidings.NewFactory(w.server.Config(), options)
		w.must(err)
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{})
		w.must(err)
		follow(w, i)
		w.must(w.factory.Start(t.Context()))
		w.must(w.factory.WaitForSync(t.Context()))
		before := w.server.Snapshot()
		w.update("a", 3)
		rewind(w, before)
		for range 60 {
			if begun.Load() > 0 {
				break
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		w.create("later")
		synctest.Wait()
		if n := ended.Load(); begun.Load() != 1 || n != 0 {
			t.Fatalf("%d recordings were begun and %d ended", begun.Load(), n)
		}
		if states := w.cached(); states["default/later"] == "" || len(states) != 2 {
			t.Errorf("during the recording the informer has %v", states)
		}
		w.must(w.factory.Shutdown(t.Context()))
		if ended.Load() != 1 {
			t.Error("the informer ended before the recording")
		}
	})
}

// TestP16_TheRecordingOfARewindHasTheListThatFollows: the list that begins the new history takes
// seconds. A replay of the recording that is written because of the rewind has it.
func TestP16_TheRecordingOfARewindHasTheListThatFollows(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flight.Options{Dir: dir}, calm, false)
		before := w.server.Snapshot()
		w.update("c", 3)
		w.server.Inject(apisim.Match{Verb: "watch", Resource: "configmaps"}, apisim.Delay(3*time.Second))
		rewind(w, before)
		time.Sleep(time.Minute)
		synctest.Wait()
		files, err := filepath.Glob(filepath.Join(dir, "*.zip"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the directory has %v: %v", files, err)
		}
		recording, err := flight.Open(files[0])
		w.must(err)
		track, err := recording.Track("")
		w.must(err)
		want := w.health()
		for _, speed := range []float64{1, math.Inf(1)} {
			played, i := replay(w, track, newConfigMap, calm, speed)
			if h := i.Health(); h.Version != want.Version || h.Lists != 2 || played.Unplanned() > 0 {
				t.Errorf("at speed %v the replay is at version %s after %d lists, with %d requests that were not "+
					"recorded; recorded: %s", speed, h.Version, h.Lists, played.Unplanned(), want.Version)
			}
			if got := statesOf(i); !maps.Equal(got, w.cached()) {
				t.Errorf("at speed %v the replay has %v, recorded %v", speed, got, w.cached())
			}
		}
	})
}
