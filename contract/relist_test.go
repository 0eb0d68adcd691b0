package contract_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestRelistDecodesWhatHasChangedAndNothingElse changes, deletes and creates one of
// eight pods while the server is away. The others stay the objects they were.
func TestRelistDecodesWhatHasChangedAndNothingElse(t *testing.T) {
	for _, paged := range []bool{false, true} {
		t.Run(fmt.Sprint("paged ", paged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o tidings.FactoryOptions
				o.Transport.NoStreamedLists = paged
				w := newWorld(t, nil, o, apisim.Options{})
				defer w.end()
				informer, before := replicasOf(w, tidings.Selection{})
				decoded := informer.Health().Decoding.Shared
				changed := before[1].DeepCopy()
				changed.Labels["tier"] = "back"
				ctx := context.Background()
				w.away(func() {
					_, err := w.server.Update(ctx, changed)
					w.must(err)
					_, err = w.server.Delete(ctx, podResource, "default", "web-2")
					w.must(err)
					_, err = w.server.Create(ctx, replica(8))
					w.must(err)
				})
				w.settle()
				for i, old := range before {
					now, err := informer.Lister().Namespace("default").Get(old.Name)
					switch {
					case i == 2 && err == nil:
						t.Error("a pod that was deleted is still there")
					case i == 1 && (err != nil || now.Labels["tier"] != "back"):
						t.Errorf("the pod that was changed is %v, %v", now, err)
					case i != 1 && i != 2 && now != old:
						t.Errorf("pod %d is another object than before", i)
					}
				}
				h := informer.Health()
				// Two pods, a bookmark of the watch, and the one that ends a streamed list.
				if got := h.Decoding.Shared - decoded; h.Lists != 2 || got < 2 || got > 4 {
					t.Errorf("%d objects were decoded in list %d, want 2 pods and 2 bookmarks at most",
						got, h.Lists)
				}
			})
		})
	}
}
