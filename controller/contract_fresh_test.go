package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

var (
	createNow metav1.CreateOptions
	errLater  = errors.New("not yet")
)

// TestC03_CreatedAndDeletedInOneCall: the cache is behind both writes, so that an object that the
// call has deleted appears in it later.
func TestC03_CreatedAndDeletedInOneCall(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		delayWatches(w, "", 500*time.Millisecond)
		secrets := informer[*corev1.Secret](w)
		n, stale := 0, 0
		c := newController(w, options{
			Secondaries: []secondary{controller.Owns(secrets)},
		}, func(ctx context.Context, r request) (controller.Result, error) {
			if controller.Read(ctx, secrets).Len() > 0 {
				stale++
			}
			if n++; n > 1 {
				return controller.Result{}, nil
			}
			made, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "s"), createNow)
			fatal(t, err)
			fatal(t, w.client.CoreV1().Secrets("a").Delete(ctx, made.Name, deleteNow))
			return controller.Result{RequeueAfter: time.Millisecond}, nil
		})
		stop := start(w, c)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n < 2 || stale > 0 {
			t.Errorf("%d calls, of which %d read what was deleted", n, stale)
		}
		fatal(t, stop())
	})
}

// TestC03_ASecondaryThatIsAddedLater: its cache is behind what calls wrote before, and what they write while
// the server is asked about its type.
func TestC03_ASecondaryThatIsAddedLater(t *testing.T) {
	for name, of := range map[string]func(secretsSecondary) secretsSecondary{
		"optional": secretsSecondary.Optional,
		"required": func(s secretsSecondary) secretsSecondary { return s },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				secrets := lateSecrets(w, 500*time.Millisecond)
				written, stale := 0, 0
				var isAdded atomic.Bool
				c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
					if isAdded.Load() && controller.Read(ctx, secrets).Len() != written {
						stale++
					}
					if written == 3 {
						return controller.Result{}, nil
					}
					written++
					_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", fmt.Sprint("s", written)), createNow)
					return controller.Result{RequeueAfter: time.Second}, err
				})
				stop := start(w, c)
				synctest.Wait()
				fatal(t, c.AddSecondary(of(controller.Reads(secrets))))
				isAdded.Store(true)
				c.Enqueue("a/x")
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if written != 3 || stale > 0 {
					t.Errorf("after %d writes, %d calls have not read those before", written, stale)
				}
				if h := c.Health(); h.Calls != 5 && h.Calls != 4 {
					t.Errorf("%d calls", h.Calls)
				}
				fatal(t, stop())
			})
		})
	}
}

// TestC03_LastFinalizer: the answer to the write that removes the last finalizer has the version
// before the write.
func TestC03_LastFinalizer(t *testing.T) {
	inWorld(t, func(w *world) {
		held := configMap("a", "x")
		held.Finalizers = []string{"example.com/held"}
		create(w, held)
		delayWatches(w, "", 500*time.Millisecond)
		var log calls
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			switch {
			case r.Gone:
				log.add("gone")
			case r.Object.DeletionTimestamp != nil:
				log.add("deleting")
				next := r.Object.DeepCopy()
				next.Finalizers = nil
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, next, updateNow)
				return controller.Result{RequeueAfter: time.Millisecond}, err
			default:
				log.add("there")
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		time.Sleep(time.Second)
		fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, "x", deleteNow))
		time.Sleep(5 * time.Second)
		log.expect(t, "there", "deleting", "gone")
		fatal(t, stop())
	})
}

// TestC03_TheNextRunAwaitsTheWritesOfTheLast: a term ends while the cache is behind.
func TestC03_TheNextRunAwaitsTheWritesOfTheLast(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, withState(configMap("a", "x"), "1"))
		delayWatches(w, "", time.Second)
		var log calls
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s", r.Object.Data["state"])
			if r.Object.Data["state"] == "1" {
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "2"), updateNow)
				return controller.Result{}, err
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		synctest.Wait()
		fatal(t, stop())
		log.expect(t, "1")
		stop = start(w, c)
		synctest.Wait()
		log.expect(t)
		time.Sleep(time.Second)
		log.expect(t, "2")
		fatal(t, stop())
	})
}

// TestC03_ARemovedSecondaryHoldsNothingBack: its watch is silent when it is removed.
func TestC03_ARemovedSecondaryHoldsNothingBack(t *testing.T) {
	for _, whileItRuns := range []bool{false, true} {
		inWorld(t, func(w *world) {
			create(w, configMap("a", "x"))
			delayWatches(w, "secrets", 0)
			secrets := informer[*corev1.Secret](w)
			var c *controller.Controller[*corev1.ConfigMap]
			n := 0
			c = newController(w, options{
				Secondaries: []secondary{controller.Reads(secrets)},
			}, func(ctx context.Context, r request) (controller.Result, error) {
				if n++; n > 1 {
					return controller.Result{}, nil
				}
				_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "s"), createNow)
				fatal(t, err)
				if whileItRuns {
					fatal(t, c.RemoveSecondary(secrets))
				}
				return controller.Result{RequeueAfter: time.Millisecond}, err
			})
			stop := start(w, c)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if !whileItRuns {
				if h := c.Health(); n != 1 || h.ParkedKeys != 1 || len(h.Parked) != 1 || h.Parked[0].Object != "a/s" {
					t.Errorf("%d calls, health %+v", n, h)
				}
				fatal(t, c.RemoveSecondary(secrets))
				time.Sleep(time.Second)
			}
			synctest.Wait()
			if n != 2 {
				t.Errorf("%d calls, want 2", n)
			}
			fatal(t, stop())
		})
	}
}

// TestC03_UnknownOutcomes: it is not known whether the write of a call was applied. The next call
// begins when the server has answered that, not before.
func TestC03_UnknownOutcomes(t *testing.T) {
	for name, o := range map[string]struct {
		fault       apisim.Fault
		applied     bool
		least, most time.Duration
	}{
		"an error after the write":  {apisim.RefuseApplied(500), true, time.Second, 2 * time.Second},
		"an error before the write": {apisim.Refuse(500, 0), false, time.Second, 2 * time.Second},
		"a proxy's page":            {page, false, time.Second, 2 * time.Second},
		"no answer":                 {apisim.CutBefore(0), true, 35 * time.Second, 37 * time.Second},
		"applied later":             {apisim.ApplyLater(500*time.Millisecond, 504), true, 35 * time.Second, 37 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				create(w, withState(configMap("a", "x"), "1"))
				m := apisim.Match{Verb: "update", Times: 1}
				w.server.Inject(m, o.fault)
				delayWatches(w, "", 100*time.Millisecond)
				began, waited := time.Time{}, time.Duration(0)
				var log calls
				c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
					log.add("%s", r.Object.Data["state"])
					if !began.IsZero() {
						waited = time.Since(began)
						return controller.Result{}, nil
					}
					began = time.Now()
					_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "2"), updateNow)
					return controller.Result{}, err
				})
				stop := start(w, c)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				want := "1"
				if o.applied {
					want = "2"
				}
				got := log.take()
				if len(got) < 2 || got[1] != want || waited < o.least || waited > o.most {
					t.Errorf("calls %q after %v", got, waited)
				}
				fatal(t, stop())
			})
		})
	}
}

// TestC03_ConflictsWaitForTheOtherWrite: another writer was faster, and the cache does not show it.
func TestC03_ConflictsWaitForTheOtherWrite(t *testing.T) {
	for name, o := range map[string]struct {
		delay time.Duration // of the watch
		calls int           // the most: an event may come after the call that its state led to
		most  time.Duration
	}{
		"the cache follows":            {300 * time.Millisecond, 3, 400 * time.Millisecond},
		"the cache does not follow":    {time.Hour, 2, 1100 * time.Millisecond},
		"the cache has it at the time": {0, 3, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				first := create(w, withState(configMap("a", "x"), "1"))
				if o.delay > 0 {
					delayWatches(w, "", o.delay)
				}
				n := 0
				var began time.Time
				took := time.Duration(0)
				c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
					if n++; n > 1 {
						took = time.Since(began)
						return controller.Result{}, nil
					}
					update(w, withState(first, "2"))
					began = time.Now()
					_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(first, "3"), updateNow)
					if !apierrors.IsConflict(err) {
						t.Errorf("the error is %v", err)
					}
					return controller.Result{}, err
				})
				stop := start(w, c)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if n < 2 || n > o.calls || took > o.most {
					t.Errorf("%d calls, the second after %v", n, took)
				}
				fatal(t, stop())
			})
		})
	}
}

// TestC03_AWriteThatASelectionHides: the server is asked about the write after a second.
func TestC03_AWriteThatASelectionHides(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		secrets, err := tidings.For[*corev1.Secret](w.factory, tidings.Selection{Labels: "app=web"})
		fatal(t, err)
		var began time.Time
		took, unshown, n := time.Duration(0), false, 0
		c := newController(w, options{
			Secondaries: []secondary{controller.Reads(secrets)},
		}, func(ctx context.Context, r request) (controller.Result, error) {
			if n++; n > 1 {
				took, unshown = time.Since(began), r.Unshown
				return controller.Result{}, nil
			}
			began = time.Now()
			_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "s"), createNow)
			return controller.Result{RequeueAfter: time.Millisecond}, err
		})
		stop := start(w, c)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n != 2 || !unshown || took > 1100*time.Millisecond {
			t.Errorf("%d calls, the second after %v, unshown %v", n, took, unshown)
		}
		fatal(t, stop())
	})
}

// TestC03_ACollectionInABusyCluster: the server's version grows with objects of other namespaces, so
// that the informer of the namespace does not reach it. It is as new as the server all the same.
func TestC03_ACollectionInABusyCluster(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		for _, namespace := range []string{"a", "b"} {
			create(w, secret(namespace, "s"))
		}
		secrets, err := tidings.For[*corev1.Secret](w.factory, tidings.Selection{Namespaces: []string{"a", "b"}})
		fatal(t, err)
		var began time.Time
		took, unshown, left, n := time.Duration(0), false, 0, 0
		c := newController(w, options{
			Secondaries: []secondary{controller.Reads(secrets)},
		}, func(ctx context.Context, r request) (controller.Result, error) {
			if n++; n > 1 {
				took, unshown, left = time.Since(began), r.Unshown, controller.Read(ctx, secrets).Len()
				return controller.Result{}, nil
			}
			began = time.Now()
			err := w.client.CoreV1().Secrets("a").DeleteCollection(ctx, deleteNow, metav1.ListOptions{})
			create(w, secret("b", "later"))
			return controller.Result{RequeueAfter: time.Millisecond}, err
		})
		stop := start(w, c)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n != 2 || unshown || left != 2 || took > 1100*time.Millisecond {
			t.Errorf("%d calls, the second after %v with %d secrets, unshown %v", n, took, left, unshown)
		}
		fatal(t, stop())
	})
}

// TestC03_AServerThatHangs delays the questions about many keys by their bound, but not that about another
// key.
func TestC03_AServerThatHangs(t *testing.T) {
	inWorld(t, func(w *world) {
		const hanging = 60
		for n := range hanging {
			create(w, configMap("b", fmt.Sprint("x", n)))
		}
		create(w, configMap("a", "y"))
		w.server.Inject(apisim.Match{Verb: "update"}, apisim.RefuseApplied(500))
		w.server.Inject(apisim.Match{Verb: "get", Namespace: "b"}, apisim.Delay(time.Hour))
		seen := map[string]int{}
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			if seen[r.Key]++; seen[r.Key] > 1 {
				return controller.Result{}, nil
			}
			_, err := w.client.CoreV1().ConfigMaps(r.Namespace()).Update(ctx, withState(r.Object, "2"), updateNow)
			return controller.Result{}, err
		})
		stop := start(w, c)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if seen["a/y"] != 2 || len(seen) != 1+hanging || seen["b/x0"] != 1 {
			t.Errorf("calls: %v", seen)
		}
		if h := c.Health(); h.ParkedKeys != hanging || h.Parked[0].Problem == "" {
			t.Errorf("health: %+v", h.Parked)
		} else if got := c.Waits(h.Parked[0].Key); len(got) != 1 || got[0].Because != h.Parked[0].Because() {
			t.Errorf("why it waits: %+v", got)
		}
		fatal(t, stop())
	})
}

// TestC03_ATermBeginsWhereTheLastOneEnded: the cache is behind the versions of the last holder.
func TestC03_ATermBeginsWhereTheLastOneEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		first := create(w, withState(configMap("a", "x"), "1"))
		delayWatches(w, "", 700*time.Millisecond)
		var log calls
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s", r.Object.Data["state"])
			if r.Object.Data["state"] == "2" {
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "3"), updateNow)
				return controller.Result{}, err
			}
			return controller.Result{}, nil
		})
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, w.factory.WaitForSync(w.ctx))
		second := update(w, withState(first, "2"))
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"configmaps": second.ResourceVersion}, true
		stop := startTerm(w, c, term)
		synctest.Wait()
		log.expect(t)
		if h := c.Health(); len(h.WaitingFor) != 1 || !strings.Contains(h.WaitingFor[0], "last holder") {
			t.Errorf("health: %+v", h)
		}
		time.Sleep(2 * time.Second)
		log.expect(t, "2", "3")
		fatal(t, stop())
		third, err := apisim.Get[*corev1.ConfigMap](w.ctx, w.server, "a", "x")
		fatal(t, err)
		if got := term.reached["configmaps"]; got != third.ResourceVersion {
			t.Errorf("the term was given version %q, want %s", got, third.ResourceVersion)
		}
		// After a crash there are no versions: the server is asked, and the wait is short.
		term = handingTerm{newTerm()}
		began := time.Now()
		stop = startTerm(w, c, term)
		log.expect(t, "3")
		if took := time.Since(began); took > time.Second {
			t.Errorf("the wait took %v", took)
		}
		fatal(t, stop())
	})
}
