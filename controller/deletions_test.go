package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// deletesChild returns a controller of the process whose call deletes the Secret a/child, as far as the
// cache has it; saw logs whether it does.
func deletesChild(p *replica, log *calls) *controller.Controller[*corev1.ConfigMap] {
	secrets := informer[*corev1.Secret](p.world)
	return newController(p.world, options{Slots: p.s, Secondaries: []secondary{
		controller.Reads(secrets),
	}}, func(ctx context.Context, r request) (controller.Result, error) {
		if _, err := secrets.Lister().Get("a/child"); err != nil {
			log.add("none")
			return controller.Result{}, nil
		}
		log.add("child")
		err := p.client.CoreV1().Secrets("a").Delete(ctx, "child", deleteNow)
		return controller.Result{}, err
	})
}

// TestS2_ADeletionThatAListShows: the watch of the old owner ends before the event of its deletion,
// which a list shows. The next owner must not see the deleted object.
func TestS2_ADeletionThatAListShows(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		create(w, secret("a", "child"))
		a, b := process("a", slot.Namespace), process("b", slot.Namespace)
		var log calls
		a.begins(slot.All(), deletesChild(a, &log))
		b.begins(slot.All(), deletesChild(b, &log))
		time.Sleep(time.Second)
		a.instance.SetLag(time.Second)
		b.instance.SetLag(5 * time.Second)
		a.takes(slotsOf("a"), map[string]string{})
		time.Sleep(100 * time.Millisecond)
		log.expect(t, "child")
		a.instance.SetAvailable(false)
		a.instance.SetAvailable(true) // it has no earlier events: the informers list
		versions := a.leaves(slotsOf("a"))
		log.take()
		b.takes(slotsOf("a"), versions)
		time.Sleep(time.Minute)
		log.expect(t, "none")
	})
}

// TestS2_ADeletionWithoutAnAnswer: the deletion is applied, and its answer is an error.
func TestS2_ADeletionWithoutAnAnswer(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		create(w, secret("a", "child"))
		a, b := process("a", slot.Namespace), process("b", slot.Namespace)
		var log calls
		a.begins(slot.All(), deletesChild(a, &log))
		b.begins(slot.All(), deletesChild(b, &log))
		time.Sleep(time.Second)
		b.instance.SetLag(5 * time.Second)
		w.server.Inject(apisim.Match{Verb: "delete", UserAgent: "a", Times: 1}, apisim.RefuseApplied(500))
		a.takes(slotsOf("a"), map[string]string{})
		time.Sleep(10 * time.Millisecond)
		log.expect(t, "child")
		versions := a.leaves(slotsOf("a"))
		log.take()
		b.takes(slotsOf("a"), versions)
		time.Sleep(time.Minute)
		log.expect(t, "none")
	})
}

// TestC11_ADeletedCollectionAtTheEndOfATerm leaves its version, or that it is not known.
func TestC11_ADeletedCollectionAtTheEndOfATerm(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		create(w, secret("a", "s"))
		p := process("a", slot.Namespace)
		done := make(chan struct{}, 9)
		secrets := informer[*corev1.Secret](p.world)
		c := newController(p.world, options{Secondaries: []secondary{controller.Reads(secrets)}},
			func(ctx context.Context, r request) (controller.Result, error) {
				p.instance.SetLag(time.Minute)
				err := p.client.CoreV1().Secrets("a").DeleteCollection(ctx, deleteNow, metav1.ListOptions{})
				done <- struct{}{}
				return controller.Result{}, err
			})
		term := newTerm()
		term.left, term.ok = map[string]string{}, true
		stop := startTerm(p.world, c, handingTerm{term})
		<-done
		fatal(t, stop())
		term.mu.Lock()
		defer term.mu.Unlock()
		if _, err := secrets.Lister().Get("a/s"); err != nil {
			t.Fatal("the cache shows the deletion")
		}
		if term.reached != nil && term.reached["secrets"] == "" {
			t.Errorf("the next holder is to wait for %v, and the Secrets are deleted", term.reached)
		}
	})
}
