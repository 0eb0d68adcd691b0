package flight_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/flight"
)

// TestReplayOfLargeLists replays lists whose identities are more than a quarter of the recorder's
// memory: in one page and streamed, of objects that are new and of cached ones.
func TestReplayOfLargeLists(t *testing.T) {
	var names []string
	for i := range 3200 {
		names = append(names, fmt.Sprintf("a-config-map-with-a-longer-name-%d", i))
	}
	paged := calm
	paged.NoStreamedLists, paged.PageSize = true, 100_000
	for name, transport := range map[string]tidings.Transport{"one page": paged, "streamed": calm} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", again ", again), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorldOf(t, flight.Options{MaxBytes: 1 << 20, MaxAge: 10 * time.Minute}, transport, false, names...)
					synctest.Wait()
					if again {
						time.Sleep(20 * time.Minute)
						w.server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Fail(0, http.StatusGone))
						w.server.CutConnections()
						time.Sleep(time.Minute)
						synctest.Wait()
						if lists := w.health().Lists; lists != 2 {
							t.Fatalf("%d lists", lists)
						}
					}
					recorded, objects := counters(w.health()), w.cached()
					played, i := replay(w, w.track(), newConfigMap, transport, 1)
					if got := statesOf(i); !maps.Equal(got, objects) {
						t.Errorf("%d objects after the replay, recorded %d", len(got), len(objects))
					}
					if got := counters(i.Health()); !again && got != recorded {
						t.Errorf("after the replay:\n%s\nrecorded:\n%s", got, recorded)
					}
					if played.Unplanned() > 0 {
						t.Errorf("%d requests were not recorded", played.Unplanned())
					}
				})
			})
		}
	}
}
