package tidings_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestRelistDecodesWhatHasChangedAndNothingElse changes, deletes and creates one of
// eight pods while the server is away. The others stay the objects they were.
func TestRelistDecodesWhatHasChangedAndNothingElse(t *testing.T) {
	for _, paged := range []bool{false, true} {
		t.Run(fmt.Sprint("paged ", paged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: paged}}, apisim.Options{})
				defer w.end()
				informer, before := replicasOf(w, tidings.Selection{})
				decoded := informer.Health().Decoding.Shared
				w.server.Restart(apisim.RestartOptions{Down: 100 * time.Millisecond})
				changed := before[1].DeepCopy()
				changed.Labels["tier"] = "back"
				if _, err := w.server.Update(context.Background(), changed); err != nil {
					t.Fatal(err)
				}
				if _, err := w.server.Delete(context.Background(), corev1.SchemeGroupVersion.WithResource("pods"), "default", "web-2"); err != nil {
					t.Fatal(err)
				}
				if _, err := w.server.Create(context.Background(), replica(8)); err != nil {
					t.Fatal(err)
				}
				w.server.Compact()
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
					t.Errorf("%d objects were decoded in list %d, want 2 pods and no more than 2 bookmarks", got, h.Lists)
				}
			})
		})
	}
}
