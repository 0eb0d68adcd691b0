package factory_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/informers"
)

// A watch error handler panics, which does not crash the process. The reflector begins anew, and
// its list is slow. Slots come meanwhile: Add returns nil at once, without their objects.
func TestS6_SlotsComeAfterAPanic(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash = crash }()
	synctest.Test(t, func(t *testing.T) {
		server := apisim.Start(t)
		server.RefuseStreamedLists(true)
		for i := range 40 {
			_, err := server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("o", i)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		client, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		var even, odd tidings.SlotSet
		for i := range 256 {
			if i%2 == 0 {
				even.Add(i)
			} else {
				odd.Add(i)
			}
		}
		slots := tidings.NewSlots(tidings.ByUID, even)
		f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithSlots(slots))
		i := f.Core().V1().ConfigMaps().Informer()
		var panicked atomic.Bool
		_ = i.SetWatchErrorHandler(func(*cache.Reflector, error) {
			if !panicked.Swap(true) {
				panic("no")
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		time.Sleep(time.Minute)
		server.Inject(apisim.Match{Verb: "list"}.Nth(1), apisim.Delay(time.Minute))
		server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Refuse(500, 0))
		server.CutConnections()
		time.Sleep(5 * time.Second)
		if !panicked.Load() {
			t.Error("no panic")
		}
		began := time.Now()
		err = slots.Add(ctx, odd)
		synctest.Wait()
		if n := len(i.GetStore().List()); n != 40 {
			t.Errorf("Add: %v after %v; %d of 40 objects are cached", err, time.Since(began), n)
		}
		cancel()
		f.Shutdown()
	})
}
