package controller_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

func slotOfUID(o metav1.Object) slot.Set { return slot.Of(slot.UID.Of(string(o.GetUID()), "")) }

// TestS2_ADrainThatFailsLosesNoKeyOfAnotherSlot: by UID, the call for the end of an object writes. The
// next object of the key is in another slot, and its call waits for that write. The drain of the first slot
// waits for it too, and is given up. Then the write shows: the call has to come.
func TestS2_ADrainThatFailsLosesNoKeyOfAnotherSlot(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		first := create(w, withState(configMap("a", "x"), "1"))
		create(w, secret("a", "s"))
		p := process("a", slot.UID)
		secrets := informer[*corev1.Secret](p.world)
		w.server.Inject(apisim.Match{Verb: "watch", Resource: "secrets"}, apisim.Stall(apisim.EachFrame, 5*time.Second))
		var log calls
		c := newController(p.world, options{Slots: p.s, Secondaries: []secondary{
			controller.Reads(secrets),
		}}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s %v", known(r).Data["state"], r.Gone)
			if !r.Gone {
				return controller.Result{}, nil
			}
			s, err := p.client.CoreV1().Secrets("a").Get(ctx, "s", getNow)
			fatal(t, err)
			s = s.DeepCopy()
			s.Labels = map[string]string{"ended": "1"}
			_, err = p.client.CoreV1().Secrets("a").Update(ctx, s, updateNow)
			return controller.Result{}, err
		})
		p.begins(slot.All(), c)
		p.takes(slot.All(), map[string]string{})
		log.expect(t, "1 false")
		deleted(w, "a", "x")
		createOutside(w, slotOfUID(first), "2")
		log.expect(t, "1 true")
		ctx, cancel := context.WithTimeout(p.ctx, 2*time.Second)
		defer cancel()
		if _, err := drain(ctx, p.s, slotOfUID(first)); err == nil {
			t.Fatal("the drain succeeded")
		}
		p.s.Unshut(slotOfUID(first)) // the hand-over is taken back
		time.Sleep(10 * time.Minute)
		log.expect(t, "2 false")
	})
}

// TestS2_ADrainThatSucceedsLosesNoKeyOfAnotherSlot is the same with a drain that waits longer for the
// write of another key. The next object's call has written meanwhile, and the object has changed.
func TestS2_ADrainThatSucceedsLosesNoKeyOfAnotherSlot(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		first := create(w, withState(configMap("a", "x"), "1"))
		other := create(w, withState(configMap("a", "other"), "1"))
		create(w, secret("a", "s"))
		create(w, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"}})
		p := process("a", slot.UID)
		secrets, accounts := informer[*corev1.Secret](p.world), informer[*corev1.ServiceAccount](p.world)
		w.server.Inject(apisim.Match{Verb: "watch", Resource: "secrets"}, apisim.Stall(apisim.EachFrame, time.Second))
		w.server.Inject(apisim.Match{Verb: "watch", Resource: "serviceaccounts"}, apisim.Stall(apisim.EachFrame, 3*time.Second))
		var log calls
		writeSecret := func(ctx context.Context) error {
			s, err := p.client.CoreV1().Secrets("a").Get(ctx, "s", getNow)
			fatal(t, err)
			s.Labels = map[string]string{"at": s.ResourceVersion}
			_, err = p.client.CoreV1().Secrets("a").Update(ctx, s, updateNow)
			return err
		}
		writeAccount := func(ctx context.Context) error {
			s, err := p.client.CoreV1().ServiceAccounts("a").Get(ctx, "s", getNow)
			fatal(t, err)
			s.Labels = map[string]string{"at": s.ResourceVersion}
			_, err = p.client.CoreV1().ServiceAccounts("a").Update(ctx, s, updateNow)
			return err
		}
		c := newController(p.world, options{Workers: 4, Slots: p.s, Secondaries: []secondary{
			controller.Reads(secrets), controller.Reads(accounts),
		}}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s %s %v", r.Name(), known(r).Data["state"], r.Gone)
			switch {
			case r.Gone:
				return controller.Result{}, writeSecret(ctx)
			case known(r).Data["state"] == "2":
				return controller.Result{}, writeAccount(ctx)
			}
			return controller.Result{}, nil
		})
		p.begins(slot.All(), c)
		p.takes(slot.All(), map[string]string{})
		synctest.Wait()
		if got := log.take(); len(got) != 2 {
			t.Fatalf("calls: %q", got)
		}
		deleted(w, "a", "x")
		drained := slotOfUID(first).Union(slotOfUID(other))
		second := createOutside(w, drained, "2")
		log.expect(t, "x 1 true")        // its write shows after 1 s, and then the call of the second object comes
		update(w, withState(other, "2")) // its call's write shows after 3 s
		log.expect(t, "other 2 false")
		versions := make(chan map[string]string, 1)
		go func() { got, err := drain(p.ctx, p.s, drained); fatal(t, err); versions <- got }()
		time.Sleep(1500 * time.Millisecond)
		log.expect(t, "x 2 false") // its write shows 3 s later
		update(w, withState(second, "3"))
		<-versions
		p.s.Drop(drained)
		time.Sleep(10 * time.Minute)
		log.expect(t, "x 3 false")
	})
}

// TestS2_VersionsOfASlotByUID drains the slots of objects, of which calls have updated one and deleted
// another. A slot has the versions of its own objects alone: a server that selects slots does not show
// the next owner any others.
func TestS2_VersionsOfASlotByUID(t *testing.T) {
	inWorld(t, func(w *world) {
		configMaps, s := corev1.SchemeGroupVersion.WithResource("configmaps"), controller.NewSlots(controller.ByUID)
		selected, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Slots: s.Held()})
		fatal(t, err)
		names, slots, all := []string{"updated", "deleted", "read"}, map[string]slot.Set{}, slot.Set{}
		for _, name := range names {
			for slots[name].Minus(all).IsEmpty() { // another object has the same slot
				w.server.Delete(w.ctx, configMaps, "a", name) //nolint:errcheck // it does not exist at first
				slots[name] = slot.Of(slot.UID.Of(string(create(w, configMap("a", name)).UID), ""))
			}
			all = all.Union(slots[name])
		}
		c := control(w, selected, options{Slots: s}, func(ctx context.Context, r request) (controller.Result, error) {
			client := w.client.CoreV1().ConfigMaps("a")
			switch {
			case r.Name() == "updated" && r.Object.Data == nil:
				_, err := client.Update(ctx, withState(r.Object, "1"), updateNow)
				return controller.Result{}, err
			case r.Name() == "deleted" && !r.Gone:
				return controller.Result{}, client.Delete(ctx, "deleted", metav1.DeleteOptions{})
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		s.Begin(newTerm())
		fill(w.ctx, t, s, all)
		want := map[string]string{}
		for _, name := range names {
			s.Serve(owned(slots[name]))
			synctest.Wait()
			_, want[name], err = w.server.List(w.ctx, configMaps, "")
			fatal(t, err)
		}
		want["read"] = ""
		for _, name := range names {
			got, err := drain(w.ctx, s, slots[name])
			fatal(t, err)
			if got["configmaps held"] != want[name] {
				t.Errorf("the slot of the object that was %s has the versions %v, want %q", name, got, want[name])
			}
		}
		fatal(t, stop())
	})
}
