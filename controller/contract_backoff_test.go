package controller_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

// TestC05_OwnWritesDoNotHasten: each call writes the specification, its status twice, creates and
// deletes, and fails. No such echo ends a wait or resets the failures, whether it comes before
// the answer or after the call.
func TestC05_OwnWritesDoNotHasten(t *testing.T) {
	for name, delay := range map[string]time.Duration{"the watch is fast": 0, "the watch is slow": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				create(w, deployment("a", "x"))
				if delay > 0 {
					delayWatches(w, "", delay)
				} else { // the event comes before the answer
					w.server.Inject(apisim.Match{Resource: "deployments.apps", Verb: "update"}, apisim.Stall(0, time.Millisecond))
					w.server.Inject(apisim.Match{Resource: "configmaps", Verb: "delete"}, apisim.Stall(0, time.Millisecond))
				}
				secrets := informer[*corev1.ConfigMap](w)
				n, failures := 0, 0
				c := control(w, informer[*appsv1.Deployment](w), controller.Options[*appsv1.Deployment]{
					FirstDelay:  time.Second,
					Secondaries: []controller.Secondary{controller.Owns(secrets)},
				}, func(ctx context.Context, r controller.Request[*appsv1.Deployment]) (controller.Result, error) {
					n++
					failures = r.Failures
					writeMuch(ctx, w, r.Object)
					return controller.Result{}, errLater
				})
				stop := start(w, c)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				// At 0, 1, 3, 7 and 15 seconds, and a tenth and the time of the watch later.
				if n != 5 || failures != 4 {
					t.Errorf("%d calls, the last after %d failures", n, failures)
				}
				if h := c.Health(); h.Loops != 0 {
					t.Errorf("%d calls were because of own writes alone", h.Loops)
				}
				fatal(t, stop())
			})
		})
	}
}

func writeMuch(ctx context.Context, w *world, d *appsv1.Deployment) {
	w.Helper()
	deployments := w.client.AppsV1().Deployments(d.Namespace)
	d = d.DeepCopy()
	d.Spec.Replicas = new(1 + int32(d.Generation)%5)
	d, err := deployments.Update(ctx, d, updateNow)
	fatal(w.T, err)
	for range 2 {
		d.Status.ObservedGeneration++
		d, err = deployments.UpdateStatus(ctx, d, updateNow)
		fatal(w.T, err)
	}
	child := ownedBy(configMap(d.Namespace, "child"), d, "apps/v1", "Deployment")
	_, err = w.client.CoreV1().ConfigMaps(d.Namespace).Create(ctx, child, createNow)
	fatal(w.T, err)
	fatal(w.T, w.client.CoreV1().ConfigMaps(d.Namespace).Delete(ctx, "child", deleteNow))
}

// TestC05_ChangesOfOthersHasten: a change by the call of another key ends a wait.
func TestC05_ChangesOfOthersHasten(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("a", "x"))
		create(w, configMap("a", "y"))
		var log calls
		writes := false
		c := newController(w, options{FirstDelay: 10 * time.Second, MaxDelay: time.Hour},
			func(ctx context.Context, r request) (controller.Result, error) {
				log.add("%s", r.Key)
				if r.Key == "a/x" {
					return controller.Result{}, errLater
				}
				if writes {
					_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(x, "2"), updateNow)
					fatal(t, err)
				}
				return controller.Result{}, nil
			})
		stop := start(w, c)
		log.expect(t, "a/x", "a/y")
		time.Sleep(12 * time.Second)
		log.expect(t, "a/x") // and waits for 20 to 22 seconds
		writes = true
		c.Enqueue("a/y")
		log.expect(t, "a/y")
		time.Sleep(10 * time.Second) // the first delay
		log.expect(t, "a/x")
		fatal(t, stop())
	})
}

// TestC05_TypesWithoutAGeneration: a new status does not forget the failures, other fields do.
func TestC05_TypesWithoutAGeneration(t *testing.T) {
	inWorld(t, func(w *world) {
		node := create(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		var log calls
		c := control(w, informer[*corev1.Node](w), controller.Options[*corev1.Node]{},
			func(_ context.Context, r controller.Request[*corev1.Node]) (controller.Result, error) {
				log.add("after %d", r.Failures)
				return controller.Result{}, controller.RetryAfter(errLater, time.Hour)
			})
		stop := start(w, c)
		time.Sleep(2*time.Hour + time.Second)
		log.expect(t, "after 0", "after 1", "after 2")
		node = node.DeepCopy()
		node.Status.Phase = corev1.NodeRunning
		node, err := w.client.CoreV1().Nodes().UpdateStatus(w.ctx, node, updateNow)
		fatal(t, err)
		time.Sleep(time.Hour)
		log.expect(t, "after 3")
		node = node.DeepCopy()
		node.Spec.Unschedulable = true
		update(w, node)
		time.Sleep(time.Hour)
		log.expect(t, "after 0")
		fatal(t, stop())
	})
}

// TestC05_AnEnqueueDuringACallIsKept.
func TestC05_AnEnqueueDuringACallIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		n := 0
		var c *controller.Controller[*corev1.ConfigMap]
		c = newController(w, options{}, func(_ context.Context, r request) (controller.Result, error) {
			if n++; n == 1 {
				c.Enqueue(r.Key)
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		time.Sleep(time.Second)
		synctest.Wait()
		if n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
		fatal(t, stop())
	})
}

// TestC05_ARetryAfterIsTheLeastDelay: the wait that a server asks for is believed up to five minutes, delays
// double above it, and neither a change nor Enqueue shortens it. Enqueue ends the rest of a delay at once.
func TestC05_ARetryAfterIsTheLeastDelay(t *testing.T) {
	change := func(w *world, _ *controller.Controller[*corev1.ConfigMap], x *corev1.ConfigMap) {
		update(w, withState(x, "changed"))
	}
	enqueue := func(_ *world, c *controller.Controller[*corev1.ConfigMap], _ *corev1.ConfigMap) { c.Enqueue("a/x") }
	for name, o := range map[string]struct {
		asked       time.Duration
		then        func(*world, *controller.Controller[*corev1.ConfigMap], *corev1.ConfigMap) // 30 seconds later
		until       time.Duration
		least, most int // calls
	}{
		"a second, for an hour":        {time.Second, nil, time.Hour, 15, 25},
		"68 years":                     {math.MaxInt32 * time.Second, nil, 24 * time.Hour, 80, 289},
		"a minute, and a change":       {time.Minute, change, 59 * time.Second, 1, 1},
		"a minute, and then":           {time.Minute, change, 67 * time.Second, 2, 2},
		"a minute, and Enqueue":        {time.Minute, enqueue, 59 * time.Second, 1, 1},
		"a second, and a change":       {time.Second, change, 31 * time.Second, 13, 24},
		"none, and Enqueue in a delay": {0, enqueue, 30 * time.Second, 14, 14},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				x := create(w, withState(configMap("a", "x"), "1"))
				w.server.Inject(apisim.Match{Verb: "create", Resource: "secrets"}, apisim.Refuse(422, o.asked))
				n := 0
				c := newController(w, options{}, func(ctx context.Context, _ request) (controller.Result, error) {
					n++
					_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "s"), createNow)
					return controller.Result{}, err
				})
				stop := start(w, c)
				time.Sleep(30 * time.Second)
				if o.then != nil {
					o.then(w, c, x)
				}
				time.Sleep(o.until - 30*time.Second)
				synctest.Wait()
				if n < o.least || n > o.most {
					t.Errorf("%d calls, want %d to %d", n, o.least, o.most)
				}
				fatal(t, stop())
			})
		})
	}
}
