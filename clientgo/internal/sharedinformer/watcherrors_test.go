package sharedinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// TestUndecodableObjectsReachTheWatchErrorHandler, with a reflector of the informer's name. Without
// a handler they are not reported.
func TestUndecodableObjectsReachTheWatchErrorHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(Options{Source: &script{}, Description: "maps of mine"})
		states := []delta.Unusable{{Err: errors.New("one")}, {Err: errors.New("two")}}
		i.reportUndecodable(states)
		var told []string
		i.watchErrorsTo(t.Context(), func(_ context.Context, r *cache.Reflector, err error) {
			told = append(told, fmt.Sprint(r.Name(), ": ", err))
		})
		i.reportUndecodable(states)
		i.reports.wait()
		if want := []string{"maps of mine: one", "maps of mine: two"}; !slices.Equal(told, want) {
			t.Errorf("the handler received %q, want %q", told, want)
		}
	})
}
