package controller

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/guard"
)

// BenchmarkC12_Event measures an event of an object that others have changed, while its key is
// queued and a number of other objects are watched.
func BenchmarkC12_Event(b *testing.B) {
	for _, watched := range []int{0, 32} {
		b.Run(fmt.Sprint(watched, " watched"), func(b *testing.B) {
			r := newTestRun(b, 1000)
			f := r.c.informers.Primary()
			for i := range watched {
				w := guard.Write{
					Resource:  schema.GroupResource{Resource: "configmaps"},
					Namespace: "a", Name: fmt.Sprintf("y%03d", i),
				}
				for range 2 {
					r.fights.CallEnded("a/"+w.Name, time.Now(), false, []guard.Write{w})
				}
			}
			var events []tidings.Event[*corev1.ConfigMap]
			for i, object := range r.c.primary.Lister().All() {
				next := object.DeepCopy()
				next.ResourceVersion = fmt.Sprint(100, i)
				events = append(events, tidings.Event[*corev1.ConfigMap]{
					Type: tidings.Updated, Old: object, New: next,
				})
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.intake.changed(f, events[i%len(events)])
			}
		})
	}
}
