package contract_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

// TestP11_GoexitInATransformOfSlots has a transform call runtime.Goexit for an object of slots that
// come, as a failing test does: the informer ends in order, and Add does not wait for it.
func TestP11_GoexitInATransformOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		w.stuck = true
		defer w.end()
		s := &slotted{world: w, slots: tidings.NewSlots(tidings.ByUID, half(0))}
		s.have(40)
		var exit atomic.Bool
		transform := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if exit.Load() {
				runtime.Goexit()
			}
			return c, nil
		})
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{
			Namespace: "default", Slots: s.slots, Transform: transform,
		})
		w.must(err)
		w.probe = newProbe(t, i, nil)
		s.start()
		exit.Store(true)
		w.must(s.slots.Add(s.within(time.Minute), half(1)))
		if err := i.WaitForSync(s.within(time.Minute)); err == nil {
			t.Error("the informer says that it is in sync")
		}
	})
}

// TestP11_TransformIsCalledOneByOne: an informer calls its transform for one object at a time, also
// if it has several namespaces, or slots come while its watch goes on.
func TestP11_TransformIsCalledOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		w.haveIn(10, "a", "b")
		slots := tidings.NewSlots(tidings.ByUID, half(0))
		var running, most atomic.Int64
		transform := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(100 * time.Millisecond)
			return c, nil
		})
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{
			Namespaces: []string{"a", "b"}, Slots: slots, Transform: transform,
		})
		w.must(err)
		w.probe = newProbe(t, i, nil)
		w.start()
		added := make(chan error, 1)
		go func() { added <- slots.Add(w.ctx, half(1)) }()
		for n := range 10 {
			w.after(50 * time.Millisecond)
			w.createIn("a", fmt.Sprintf("new%d", n), "1")
		}
		w.must(<-added)
		w.after(time.Minute)
		if got, want := w.probe.state(), w.serverStateOf("a", "b"); most.Load() != 1 || !maps.Equal(got, want) {
			t.Errorf("%d calls at a time; the cache holds %v, the server %v", most.Load(), got, want)
		}
	})
}

// crashing makes the test binary the program that crashes.
const crashing = "TIDINGS_TEST_CRASH"

// TestP11_PanicNamesHandlerInformerAndKey has a handler panic in a process that logs nothing.
func TestP11_PanicNamesHandlerInformerAndKey(t *testing.T) {
	if os.Getenv(crashing) != "" {
		crash(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), crashing+"=1")
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); !ok {
		t.Fatalf("the process ended with %v, want a crash:\n%s", err, out)
	}
	const want = `panic: handler "painter" of informer colours panicked at object "default/a": no paint`
	if !strings.Contains(string(out), want) {
		t.Errorf("the output lacks %q:\n%s", want, out)
	}
}

func crash(t *testing.T) {
	i, err := tidings.NewInformer(&fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", "1", "1")}}},
		informerOptions{Name: "colours", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = i.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
		OnAdd: func(*corev1.ConfigMap, bool) { panic("no paint") },
	}, tidings.HandlerOptions{Name: "painter"})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestP11_DeleteOfAnObjectWhoseAddIsPending(t *testing.T) {
	transformed(t, func(w *world, fail func(func(tidings.Object) bool)) {
		w.start()
		letGo := w.hold()
		var told follow.Follower
		w.create("a", "1")
		synctest.Wait()
		fail(isNamed("a"))
		w.remove("a")
		synctest.Wait()
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		told.Take()
		letGo()
		w.agree()
		events := told.Texts()
		expect(w, events[len(events)-2:], "Added default/a 1", "Deleted default/a tombstone 1")
	})
}

// TestP11_ListWithAnObjectWhoseAddIsPending: the state that a failed transform leaves is
// the one that the cache will hold when it comes to the list.
func TestP11_ListWithAnObjectWhoseAddIsPending(t *testing.T) {
	transformed(t, func(w *world, fail func(func(tidings.Object) bool)) {
		w.start()
		letGo := w.hold()
		w.create("a", "1")
		w.create("b", "1")
		synctest.Wait()
		fail(isNamed("a"))
		w.update("a", "2")
		w.remove("b")
		w.create("b", "2")
		w.server.Restart(apisim.RestartOptions{Down: time.Second})
		w.settle()
		var told follow.Follower
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		told.Take()
		letGo()
		for _, e := range told.Take() {
			if e.Key == "default/a" && e.Type == tidings.Deleted {
				w.Errorf("%v, although it exists", e)
			}
		}
		if got := label(w.probe.get("default/a")) + label(w.probe.get("default/b")); got != "12" {
			w.Errorf("the cache holds the states %q of a and b, want 1 and 2; health %+v",
				got, w.health())
		}
	})
}

func TestP11_TransformThatMakesAnotherObjectFails(t *testing.T) {
	for name, change := range map[string]func(*corev1.ConfigMap){
		"keep the name":                           func(c *corev1.ConfigMap) { c.Name = "z" },
		"keep the name and the namespace":         func(c *corev1.ConfigMap) { c.Namespace = "" },
		`changed the uid from "uid-a" to "other"`: func(c *corev1.ConfigMap) { c.UID = "other" },
		`changed the resourceVersion from "5" to`: func(c *corev1.ConfigMap) { c.ResourceVersion = "1000" },
		"": func(c *corev1.ConfigMap) { c.UID, c.ResourceVersion = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("b", "4", "1"), stateAt("a", "5", "1")}}}
			var o informerOptions
			o.Transform = func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				if c = c.DeepCopy(); c.Name == "a" {
					change(c)
				}
				return c, nil
			}
			runSource(t, s, o, func(i sourced) {
				h := i.Health()
				if name == "" {
					i.send(source.Modified, stateAt("a", "6", "2"))
					expect(t, i.told.Texts(), "Added default/a initial 1",
						"Added default/b initial 1", "Updated default/a 1→2")
					return
				}
				expect(t, i.told.Texts(), "Added default/b initial 1")
				if h.TransformErrors != 1 || !strings.Contains(h.LastTransformError.Error(), name) {
					t.Errorf("%d transform errors, the last: %v",
						h.TransformErrors, h.LastTransformError)
				}
			})
		})
	}
}
