package controller_test

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller"
)

// TestC07_Reasons name the object that changed, the number of changes, and the field manager.
func TestC07_Reasons(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("a", "x"))
		var log calls
		hold := make(chan struct{}, 1)
		c := newController(w, options{Secondaries: []secondary{
			controller.Owns(informer[*corev1.Secret](w)),
		}}, func(ctx context.Context, r request) (controller.Result, error) {
			for _, reason := range r.Reasons {
				log.add("%s", reason)
			}
			<-hold
			return controller.Result{}, nil
		})
		stop := start(w, c)
		log.expect(t, "Initial configmaps.v1 a/x")
		s := create(w, ownedBy(secret("a", "s"), x, "v1", "ConfigMap"))
		for _, value := range []string{"1", "2", "3"} {
			s = update(w, labelled(s, value))
		}
		synctest.Wait()
		hold <- struct{}{}
		log.expect(t, "Added secrets.v1 a/s", "Updated secrets.v1 a/s (3 times)")
		hold <- struct{}{}
		x = x.DeepCopy()
		at := metav1.Now()
		x.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "someone", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at},
		}
		update(w, x)
		log.expect(t, "Updated configmaps.v1 a/x by someone")
		close(hold)
		fatal(t, stop())
	})
}
