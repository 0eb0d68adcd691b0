package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// TestS2_AHandOverSoonAfterACrash: a process gets a slot whose last owner has crashed, and gives it to
// another one a few seconds later. Meanwhile objects of other resources change, as Leases always do.
func TestS2_AHandOverSoonAfterACrash(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		a, b := process("a", slot.Namespace), process("b", slot.Namespace)
		var log calls
		a.begins(slot.All(), newController(a.world, options{Slots: a.s}, isCalled(&log)))
		b.begins(slot.All(), newController(b.world, options{Slots: b.s}, isCalled(&log)))
		time.Sleep(5 * time.Second)
		create(w, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}})
		a.takes(slotsOf("a"), nil)
		time.Sleep(5 * time.Second)
		log.expect(t, "a/x")
		if gap := gapOfHandOver(a, b, slotsOf("a"), &log); gap > 1500*time.Millisecond {
			t.Errorf("the planned hand-over took %v", gap)
		}
	})
}

// writesOnce returns a controller named "single" whose call takes a while, and then writes version.
func writesOnce(p *replica, takes time.Duration, version *string) *controller.Controller[*corev1.ConfigMap] {
	return newController(p.world, options{Name: "single", StopGrace: time.Minute},
		func(ctx context.Context, r request) (controller.Result, error) {
			if r.Object.Data != nil {
				return controller.Result{}, nil
			}
			time.Sleep(takes)
			o, err := p.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "1"), updateNow)
			fatal(p.T, err)
			*version = o.ResourceVersion
			return controller.Result{}, nil
		})
}

// TestS2_ALeaderWhoseHandOverWasTakenBack: the call of a controller that is led singly runs longer than
// the hand-over may take. The hand-over is taken back, and the process leaves before the call has ended.
func TestS2_ALeaderWhoseHandOverWasTakenBack(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		p := process("a", slot.Namespace)
		version := ""
		stop := p.manages(writesOnce(p, 40*time.Second, &version))
		given := map[string]string{"configmaps": "1"}
		lead(p.s, given)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
		defer cancel()
		if _, err := resign(ctx, p.s); !errors.Is(err, controller.ErrCallsRunning) {
			t.Fatal(err)
		}
		p.s.Unshut(slot.Of(slot.Count)) // the hand-over was taken back
		time.Sleep(time.Second)
		left, err := resign(p.ctx, p.s)
		fatal(t, err)
		if left != nil && left["configmaps"] != version {
			t.Errorf("the next leader is to wait for %v, and the call has written %s", left, version)
		}
		fatal(t, stop())
	})
}

// TestS2_ADeletionThatShowsInTheNextRun: the cache of the leader lags. Its hand-over is taken back; in
// the next run the deletion of the last one shows.
func TestS2_ADeletionThatShowsInTheNextRun(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		create(w, secret("a", "child"))
		p := process("a", slot.Namespace)
		secrets := informer[*corev1.Secret](p.world)
		w.server.Inject(apisim.Match{Verb: "watch", Resource: "secrets"}, apisim.Stall(apisim.EachFrame, 5*time.Second))
		c := newController(p.world, options{Name: "single", Secondaries: []secondary{
			controller.Reads(secrets),
		}}, func(ctx context.Context, r request) (controller.Result, error) {
			if _, err := secrets.Lister().Get("a/child"); err != nil {
				return controller.Result{}, nil
			}
			return controller.Result{}, p.client.CoreV1().Secrets("a").Delete(ctx, "child", deleteNow)
		})
		stop := p.manages(c)
		lead(p.s, map[string]string{})
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(p.ctx, time.Second)
		defer cancel()
		if _, err := resign(ctx, p.s); err == nil {
			t.Fatal("the controller has resigned")
		}
		p.s.Unshut(slot.Of(slot.Count)) // the hand-over was taken back
		time.Sleep(20 * time.Second)
		left, err := resign(p.ctx, p.s)
		fatal(t, err)
		if left != nil && left["secrets"] == "" {
			t.Errorf("the next leader is to wait for %v: the deletion is not in it", left)
		}
		fatal(t, stop())
	})
}

// labelsChild runs a controller of the process whose call labels the Secret a/child, and logs the label that
// it has seen.
func labelsChild(p *replica, log *calls, secondaryOf func(*tidings.Informer[*corev1.Secret]) secretsSecondary) {
	secrets := informer[*corev1.Secret](p.world)
	p.begins(slot.All(), newController(p.world, options{Slots: p.s, Secondaries: []secondary{secondaryOf(secrets)}},
		func(ctx context.Context, r request) (controller.Result, error) {
			o, err := secrets.Lister().Get("a/child")
			fatal(p.T, err)
			log.add("%v", o.Labels["seen"])
			if o.Labels != nil {
				return controller.Result{}, nil
			}
			o = o.DeepCopy()
			o.Labels = map[string]string{"seen": "yes"}
			_, err = p.client.CoreV1().Secrets("a").Update(ctx, o, updateNow)
			return controller.Result{}, err
		}))
}

func optional(secrets *tidings.Informer[*corev1.Secret]) secretsSecondary {
	return controller.Reads(secrets).Optional()
}

// TestS2_ASecondaryThatLags is synced in both processes. That of the next owner lags.
func TestS2_ASecondaryThatLags(t *testing.T) {
	for name, secondaryOf := range map[string]func(*tidings.Informer[*corev1.Secret]) secretsSecondary{
		"optional": optional, "not optional": controller.Reads[*corev1.Secret],
	} {
		t.Run(name, func(t *testing.T) {
			withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
				create(w, configMap("a", "x"))
				create(w, secret("a", "child"))
				a, b := process("a", slot.Namespace), process("b", slot.Namespace)
				var log calls
				labelsChild(a, &log, secondaryOf)
				labelsChild(b, &log, secondaryOf)
				time.Sleep(5 * time.Second)
				b.instance.SetLag(3 * time.Second)
				a.takes(slotsOf("a"), map[string]string{})
				time.Sleep(100 * time.Millisecond)
				log.expect(t, "")
				versions := a.leaves(slotsOf("a"))
				log.take()
				b.takes(slotsOf("a"), versions)
				time.Sleep(time.Minute)
				if got := log.take(); len(got) == 0 || got[0] != "yes" {
					t.Errorf("with %v, calls see %q", versions, got)
				}
			})
		})
	}
}

// TestS2_AnOptionalSecondaryThatFails is not waited for: the server refuses its lists and watches.
func TestS2_AnOptionalSecondaryThatFails(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		create(w, secret("a", "child"))
		a, b := process("a", slot.Namespace), process("b", slot.Namespace)
		var log calls
		labelsChild(a, &log, optional)
		labelsChild(b, &log, optional)
		time.Sleep(5 * time.Second)
		w.server.Inject(apisim.Match{UserAgent: "b", Resource: "secrets"}, apisim.Refuse(403, 0))
		w.server.CutConnections()
		time.Sleep(5 * time.Minute)
		a.takes(slotsOf("a"), map[string]string{})
		time.Sleep(100 * time.Millisecond)
		log.expect(t, "")
		if gap := gapOfHandOver(a, b, slotsOf("a"), &log); gap > time.Second {
			t.Errorf("the hand-over took %v", gap)
		}
	})
}

// TestS2_ALeaderWhoseHandOverIsTakenBackAfterItHasResigned: the next owner ends, and the process leaves.
func TestS2_ALeaderWhoseHandOverIsTakenBackAfterItHasResigned(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		p := process("a", slot.Namespace)
		version := ""
		stop := p.manages(writesOnce(p, 0, &version))
		given := map[string]string{"configmaps": "1"}
		lead(p.s, given)
		time.Sleep(time.Second)
		first, err := resign(p.ctx, p.s)
		fatal(t, err)
		fatal(t, stop()) // the process leaves
		lead(p.s, given) // the hand-over was taken back, as the next owner has ended
		left, err := resign(p.ctx, p.s)
		fatal(t, err)
		if left != nil && left["configmaps"] != version {
			t.Errorf("the next leader is to wait for %v after %v, and the call has written %s", left, first, version)
		}
	})
}
