package flight_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

var quiet = slog.New(slog.DiscardHandler)

// world is a server with an informer of config maps that is recorded.
type world struct {
	*testing.T
	server   *apisim.Server
	factory  *tidings.Factory
	recorder *flight.Recorder
	health   func() health.Informer
	cached   func() map[string]string // by key: version and the label n
}

// newWorld runs an informer until the test is over. The first objects are a, b and c.
func newWorld(t *testing.T, o flight.Options, transport tidings.Transport, dynamic bool) *world {
	t.Helper()
	return newWorldOf(t, o, transport, dynamic, "a", "b", "c")
}

// newWorldOf does so with other objects.
func newWorldOf(
	t *testing.T, o flight.Options, transport tidings.Transport, dynamic bool, names ...string,
) *world {
	t.Helper()
	w := &world{T: t, server: apisim.Start(t)}
	for _, name := range names {
		w.create(name)
	}
	var err error
	o.Logger = quiet
	w.recorder, err = flight.New(o)
	w.must(err)
	transport.Recorder = w.recorder
	w.factory, err = tidings.NewFactory(w.server.Config(), tidings.FactoryOptions{
		Transport: transport, Logger: quiet,
	})
	w.must(err)
	factory := w.factory
	if dynamic {
		i, err := tidings.Dynamic(factory, configMaps, tidings.Selection{})
		w.must(err)
		follow(w, i)
	} else {
		i, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		w.must(err)
		follow(w, i)
	}
	w.must(factory.Start(t.Context()))
	w.must(factory.WaitForSync(t.Context()))
	return w
}

func follow[T tidings.Object](w *world, i *tidings.Informer[T]) {
	w.health, w.cached = i.Health, func() map[string]string { return statesOf(i) }
}

func statesOf[T tidings.Object](i *tidings.Informer[T]) map[string]string {
	states := map[string]string{}
	for _, o := range i.Lister().All() {
		states[source.Key(o.GetNamespace(), o.GetName())] = o.GetResourceVersion()
	}
	return states
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func configMap(name, n string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{Data: map[string]string{"n": n}}
	c.Namespace, c.Name = "default", name
	return c
}

func (w *world) create(name string) {
	w.Helper()
	_, err := w.server.Create(context.Background(), configMap(name, "0"))
	w.must(err)
}

// update updates an object n times, a virtual second apart.
func (w *world) update(name string, n int) {
	w.Helper()
	for i := range n {
		_, err := w.server.Update(context.Background(), configMap(name, fmt.Sprint(i+1)))
		w.must(err)
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

func (w *world) delete(name string) {
	w.Helper()
	_, err := w.server.Delete(context.Background(), configMaps, "default", name)
	w.must(err)
}

// rewind restores a backup while the server is away for long enough that informers check its
// version.
func rewind(w *world, to *apisim.Snapshot) {
	w.server.SetAvailable(false)
	w.server.Rewind(to)
	time.Sleep(15 * time.Second)
	w.server.SetAvailable(true)
}

// dump returns the recording, after a way through a file.
func (w *world) dump() *flight.Recording {
	w.Helper()
	var file bytes.Buffer
	w.must(w.recorder.Dump(&file, "a test"))
	recording, err := flight.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	w.must(err)
	return recording
}

// track returns what was recorded of the informer until now.
func (w *world) track() *flight.Track {
	w.Helper()
	track, err := w.dump().Track("")
	w.must(err)
	return track
}

// replay plays a track until all was played.
func replay[T tidings.Object](
	w *world, track *flight.Track, make func() T, transport tidings.Transport, speed float64,
) (*source.Replayed[T], *tidings.Informer[T]) {
	w.Helper()
	played, err := source.Replay(track, make, source.ReplayOptions{Speed: speed})
	w.must(err)
	i, err := tidings.NewInformer(played, tidings.InformerOptions[T]{
		Transport: transport, Logger: quiet,
	})
	w.must(err)
	go i.Run(w.Context()) //nolint:errcheck // it ends with the test
	<-played.Done()
	synctest.Wait()
	return played, i
}

// counters are those of the health of an informer that a replay repeats.
func counters(h health.Informer) string {
	var states []string
	for _, t := range h.Watch.History {
		states = append(states, string(t.State))
	}
	return fmt.Sprintf("%s: %v: %d lists, %d watches, %d dropped, failures %d, version %s, stale %d",
		h.State, states, h.Lists, h.Watches, h.Dropped, h.Failures, h.Watch.Version, h.Stale)
}

// calm are the watches of a recorded informer and of its replay: their timeouts are random, and
// must not end in the middle of a test.
var calm = tidings.Transport{WatchTimeout: time.Hour}

// reading are the requests of an informer for a type.
func reading(verb string) apisim.Match {
	return apisim.Match{Verb: verb, Resource: "configmaps"}
}

// roundTrips are faults of a server, during which an informer is recorded.
var roundTrips = map[string]func(w *world){
	"nothing":     func(*world) {},
	"a cut watch": func(w *world) { w.server.CutConnections() },
	"an expired version": func(w *world) {
		w.server.Inject(reading("watch").Nth(1), apisim.Fail(0, http.StatusGone))
		w.server.CutConnections()
	},
	"an unavailable server": func(w *world) {
		w.server.SetAvailable(false)
		w.server.CutConnections()
		time.Sleep(30 * time.Second)
		w.server.SetAvailable(true)
	},
	"refused watches": func(w *world) {
		w.server.Inject(apisim.Match{Verb: "watch", Times: 5}, apisim.Refuse(503, 0))
		w.server.CutConnections()
	},
	"too many requests": func(w *world) {
		w.server.Inject(apisim.Match{Verb: "watch", Times: 2}, apisim.Refuse(429, 7*time.Second))
		w.server.CutConnections()
	},
	"noise": func(w *world) {
		w.server.Inject(reading("watch").Nth(1), apisim.Garble(1))
		w.server.CutConnections()
	},
	"no streamed lists": func(w *world) {
		w.server.RefuseStreamedLists(true)
		w.server.Compact()
		w.server.CutConnections()
	},
	"a rewind": func(w *world) {
		before := w.server.Snapshot()
		w.update("c", 3)
		rewind(w, before)
	},
	"a rewind during which the server is silent": func(w *world) {
		before := w.server.Snapshot()
		w.update("c", 3)
		w.server.Inject(reading("watch").Nth(1), apisim.Stall(0, time.Hour))
		w.server.CutConnections()
		time.Sleep(time.Minute)
		w.server.Rewind(before)
		time.Sleep(5 * time.Minute)
	},
	"a watch that is not begun": func(w *world) {
		w.server.Inject(reading("watch").Nth(1), apisim.Stall(0, 10*time.Minute))
		w.server.CutConnections()
		time.Sleep(11 * time.Minute)
	},
	"a list that is not answered": func(w *world) {
		w.server.RefuseStreamedLists(true)
		w.server.Inject(reading("watch").Nth(1), apisim.Fail(0, http.StatusGone))
		w.server.Inject(reading("list").Nth(1), apisim.Stall(0, 10*time.Minute))
		w.server.CutConnections()
		time.Sleep(11 * time.Minute)
	},
	"a watch without bookmarks": func(w *world) {
		w.server.Inject(reading("watch").Nth(1), apisim.Stall(4, time.Hour))
		w.server.CutConnections()
		time.Sleep(10 * time.Minute)
	},
	"a watch that outlives its timeout": func(w *world) {
		w.server.Inject(reading("watch").Nth(1), apisim.Stall(1, 9*time.Hour))
		w.server.CutConnections()
		time.Sleep(3 * time.Hour)
	},
	"ends of watches in good order": func(w *world) {
		w.server.Inject(reading("watch"), apisim.DropBookmarks())
		for range 5 {
			w.server.Inject(reading("watch").Nth(1), apisim.CutLater(time.Minute))
			w.server.CutConnections()
			time.Sleep(2 * time.Minute)
		}
	},
}

// TestRoundTrip replays informers after faults: they end with the same objects and counters,
// whatever the speed.
func TestRoundTrip(t *testing.T) {
	for name, fault := range roundTrips {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, flight.Options{MaxAge: 24 * time.Hour}, calm, false)
				w.update("a", 3)
				fault(w)
				time.Sleep(20 * time.Second) // clearly longer than an outage that is not checked
				w.create("d")
				w.update("a", 2)
				w.delete("b")
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				recorded, objects, track := w.health(), w.cached(), w.track()
				for _, speed := range []float64{1, 10, math.Inf(1)} {
					if speed == 1 && name == "a watch that outlives its timeout" {
						continue // the timeouts of informers are random
					}
					played, i := replay(w, track, newConfigMap, calm, speed)
					if got, want := counters(i.Health()), counters(recorded); got != want {
						t.Errorf("after the replay at speed %v:\n%s\nrecorded:\n%s", speed, got, want)
					}
					if got := statesOf(i); !maps.Equal(got, objects) {
						t.Errorf("after the replay %v, recorded %v", got, objects)
					}
					if played.Unplanned() > 0 {
						t.Errorf("at speed %v %d requests were not recorded", speed, played.Unplanned())
					}
					a, err := i.Lister().Get("default/a")
					if err != nil || name == "nothing" && a.Data["n"] != "2" {
						t.Errorf("object a has the data %v: %v", a.Data, err)
					}
				}
			})
		})
	}
}

func newConfigMap() *corev1.ConfigMap { return new(corev1.ConfigMap) }

// TestRoundTripOfAnEnd replays informers that were recorded during a fault: they end in its state.
func TestRoundTripOfAnEnd(t *testing.T) {
	for name, fault := range map[string]func(w *world) (state health.State, took time.Duration){
		"a quiet watch": func(w *world) (health.State, time.Duration) {
			time.Sleep(40 * time.Second)
			return health.StateWatching, 40 * time.Second
		},
		"a watch that is not begun": func(w *world) (health.State, time.Duration) {
			w.server.Inject(reading("watch"), apisim.Stall(0, time.Hour))
			w.server.CutConnections()
			time.Sleep(time.Minute)
			return health.StateBackoff, time.Minute
		},
		"a silent server": func(w *world) (health.State, time.Duration) {
			w.server.Inject(reading("watch"), apisim.Stall(0, time.Hour))
			w.server.CutConnections()
			time.Sleep(2*time.Minute + time.Second)
			return health.StateBackoff, 2 * time.Minute
		},
		"a silent list": func(w *world) (health.State, time.Duration) {
			w.server.RefuseStreamedLists(true)
			w.server.Inject(reading("watch").Nth(1), apisim.Fail(0, http.StatusGone))
			w.server.Inject(reading("list"), apisim.Stall(0, time.Hour))
			w.server.CutConnections()
			time.Sleep(time.Minute)
			return health.StateBackoff, time.Minute // the attempts after a failure
		},
		"a forbidden list": func(w *world) (health.State, time.Duration) {
			w.server.Compact()
			w.server.Inject(apisim.Match{}, apisim.Refuse(403, 0))
			w.server.CutConnections()
			time.Sleep(time.Minute)
			return health.StateForbidden, 0
		},
		"a missing type": func(w *world) (health.State, time.Duration) {
			w.server.Inject(apisim.Match{}, apisim.Refuse(404, 0))
			w.server.CutConnections()
			time.Sleep(time.Minute)
			return health.StateNoSuchResource, 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, flight.Options{}, calm, false)
				w.update("a", 3)
				want, took := fault(w)
				synctest.Wait()
				recorded, track := w.health(), w.track()
				if h := recorded.Watch.History; h[len(h)-1].State != want {
					t.Fatalf("recorded: %s", counters(recorded))
				}
				for _, speed := range []float64{1, math.Inf(1)} {
					began := time.Now()
					_, i := replay(w, track, newConfigMap, calm, speed)
					got := i.Health()
					if h := got.Watch.History; h[len(h)-1].State != want || got.Failures != recorded.Failures {
						t.Errorf("after the replay at speed %v:\n%s\nrecorded:\n%s",
							speed, counters(got), counters(recorded))
					}
					if played := time.Since(began); speed == 1 && played < took {
						t.Errorf("the replay took %v", played)
					}
				}
			})
		})
	}
}

// TestReplayOfALaterPart replays the rest of a recording whose first records are gone: the base
// takes their place.
func TestReplayOfALaterPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flight.Options{MaxAge: 2 * time.Minute}, calm, true)
		w.update("a", 60)
		time.Sleep(time.Minute)
		w.update("a", 90)
		w.delete("c")
		time.Sleep(time.Second)
		synctest.Wait()
		track := w.track()
		if n := len(track.Records); n < 50 || n > 140 || track.Records[0].Kind.String() != "event" {
			t.Errorf("%d records are left, the first is %+v", n, track.Records[0])
		}
		keys := func() (keys []string) {
			for _, o := range track.Base {
				keys = append(keys, fmt.Sprint(o.Key, " ", len(o.Data) > 0))
			}
			return keys
		}()
		want := []string{"default/a true", "default/b false", "default/c true"}
		if !slices.Equal(keys, want) {
			t.Errorf("the base has, with their objects, %v, want %v", keys, want)
		}
		_, i := replay(w, track,
			func() *unstructured.Unstructured { return new(unstructured.Unstructured) },
			calm, math.Inf(1))
		if got, want := statesOf(i), w.cached(); !maps.Equal(got, want) {
			t.Errorf("after the replay %v, recorded %v", got, want)
		}
	})
}
