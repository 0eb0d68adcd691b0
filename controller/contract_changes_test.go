package controller_test

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

// TestC02_FunctionsThatPanic are named in health, and no change is missed.
func TestC02_FunctionsThatPanic(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, withState(configMap("a", "x"), "1"))
		create(w, withState(configMap("a", "y"), "1"))
		s := create(w, secret("a", "s"))
		node := create(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		var log calls
		c := newController(w, options{
			Ignore: func(_, after *corev1.ConfigMap) bool { panic("in Ignore") },
			Flow:   func(string) string { panic("in Flow") },
			Secondaries: []secondary{
				controller.References(informer[*corev1.Secret](w), func(cm *corev1.ConfigMap) []string {
					if cm.Name == "x" {
						panic("in References")
					}
					return nil
				}),
				controller.Maps(informer[*corev1.Node](w),
					func(*corev1.Node) iter.Seq[string] {
						return func(func(string) bool) { panic("in Maps") }
					}),
			},
		}, isCalled(&log))
		stop := start(w, c)
		log.expect(t, "a/x", "a/y")
		update(w, withState(x, "2"))
		log.expect(t, "a/x")
		update(w, labelled(s, "2"))
		log.expect(t, "a/x")
		before := c.Health().Calls
		for i := range 20 {
			node = update(w, labelled(node, strings.Repeat("x", i)))
		}
		time.Sleep(2 * time.Second)
		log.expect(t, "a/x", "a/y")
		if n := c.Health().Calls - before; n != 2 {
			t.Errorf("20 failures have led to %d calls, want 2", n)
		}
		var got []string
		for _, m := range c.Health().Mappings {
			got = append(got, m.Informer+": "+m.Error)
		}
		want := []string{"configmaps.v1: Options.Flow panicked: in Flow",
			"secrets.v1: References panicked: in References", "nodes.v1: Maps panicked: in Maps"}
		if !slices.Equal(got, want) {
			t.Errorf("health: %q\nwant:   %q", got, want)
		}
		fatal(t, stop())
	})
}

func labelled[T objects.Object](obj T, value string) T {
	obj = obj.DeepCopyObject().(T)
	obj.SetLabels(map[string]string{"label": value})
	return obj
}

// TestC02_OwnersThatAnObjectHad are called too, and so is each that a burst of changes names.
func TestC02_OwnersThatAnObjectHad(t *testing.T) {
	inWorld(t, func(w *world) {
		var owners []*corev1.ConfigMap
		for _, name := range []string{"x", "y", "z"} {
			owners = append(owners, create(w, configMap("a", name)))
		}
		var log calls
		c := newController(w, options{Secondaries: []secondary{
			controller.Owns(informer[*corev1.Secret](w)),
		}}, isCalled(&log))
		stop := start(w, c)
		log.expect(t, "a/x", "a/y", "a/z")
		s := create(w, ownedBy(secret("a", "s"), owners[0], "v1", "ConfigMap"))
		log.expect(t, "a/x")
		s = update(w, ownedBy(s.DeepCopy(), owners[1], "v1", "ConfigMap"))
		update(w, ownedBy(s.DeepCopy(), owners[2], "v1", "ConfigMap"))
		synctest.Wait()
		got := log.take()
		slices.Sort(got)
		if !slices.Equal(slices.Compact(got), []string{"a/x", "a/y", "a/z"}) {
			t.Errorf("calls: %q", got)
		}
		fatal(t, w.client.CoreV1().Secrets("a").Delete(w.ctx, "s", deleteNow))
		log.expect(t, "a/z")
		create(w, ownedBy(secret("a", "t"), owners[0], "apps/v1", "ConfigMap")) // another group
		create(w, ownedBy(secret("b", "t"), owners[0], "v1", "ConfigMap"))      // another namespace
		log.expect(t)
		fatal(t, stop())
	})
}

// TestC02_UpdatesOfASecondaryThatAreIgnored lead to no call. Those that replace the object or begin
// its deletion do, and so do an addition and a deletion.
func TestC02_UpdatesOfASecondaryThatAreIgnored(t *testing.T) {
	inWorld(t, func(w *world) {
		owner := create(w, configMap("a", "x"))
		var log calls
		ignored := func(before, after *corev1.Secret) bool {
			if after.Labels["panics"] != "" {
				panic("in Ignore")
			}
			return before.Labels["state"] == after.Labels["state"]
		}
		c := newController(w, options{Secondaries: []secondary{
			controller.Owns(informer[*corev1.Secret](w)).Ignore(ignored),
		}}, func(_ context.Context, r request) (controller.Result, error) {
			log.add("%v", r.Reasons)
			return controller.Result{}, nil
		})
		stop := start(w, c)
		log.expect(t, "[Initial configmaps.v1 a/x]")
		child := ownedBy(secret("a", "s"), owner, "v1", "ConfigMap")
		child.Finalizers = []string{"test/x"}
		child = create(w, child)
		log.expect(t, "[Added secrets.v1 a/s]")
		child.Labels = map[string]string{"heartbeat": "1"}
		child = update(w, child)
		log.expect(t)
		child.Labels["state"] = "new"
		child = update(w, child)
		log.expect(t, "[Updated secrets.v1 a/s]")
		child.Labels["panics"] = "yes"
		child = update(w, child)
		log.expect(t, "[Updated secrets.v1 a/s]")
		if failed := c.Health().Mappings; len(failed) != 1 || failed[0].Object != "a/s" {
			t.Errorf("the panic of Ignore in health: %v", failed)
		}
		delete(child.Labels, "panics")
		update(w, child)
		log.expect(t)
		fatal(t, w.client.CoreV1().Secrets("a").Delete(w.ctx, "s", deleteNow))
		log.expect(t, "[Updated secrets.v1 a/s]")
		ending, err := w.client.CoreV1().Secrets("a").Get(w.ctx, "s", getNow)
		fatal(t, err)
		ending.Finalizers = nil
		update(w, ending)
		log.expect(t, "[Deleted secrets.v1 a/s]")
		fatal(t, stop())
	})
}

// TestC02_AnIgnoredWriteIsSeen: a call waits for its own write to a secondary, although the update
// leads to no call.
func TestC02_AnIgnoredWriteIsSeen(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		create(w, secret("a", "s"))
		delayWatches(w, "secrets", time.Second)
		secrets := informer[*corev1.Secret](w)
		var log calls
		c := newController(w, options{Secondaries: []secondary{
			controller.Reads(secrets).Ignore(func(_, _ *corev1.Secret) bool { return true }),
		}}, func(ctx context.Context, r request) (controller.Result, error) {
			s, err := controller.Read(ctx, secrets).Get("a/s")
			fatal(t, err)
			log.add("state %s", s.Labels["state"])
			s = s.DeepCopy()
			s.Labels = map[string]string{"state": "written"}
			_, err = w.client.CoreV1().Secrets("a").Update(ctx, s, updateNow)
			return controller.Result{}, err
		})
		stop := start(w, c)
		time.Sleep(time.Millisecond)
		c.Enqueue("a/x")
		time.Sleep(5 * time.Second)
		log.expect(t, "state ", "state written")
		fatal(t, stop())
	})
}

// TestSecondariesThatAreRefused.
func TestSecondariesThatAreRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		secrets := informer[*corev1.Secret](w)
		for want, s := range map[string]secondary{
			"the secondary is empty: make it with Owns, References, Maps or Reads":  nil,
			"the secondary is empty: make it with Owns, References, Maps or Reads ": secretsSecondary{},
			"a secondary: ":                   controller.Reads[*corev1.Secret](nil),
			"Maps: the function is nil":       controller.Maps(secrets, nil),
			"References: the function is nil": controller.References[*corev1.ConfigMap](secrets, nil),
			"References: the function takes *v1.Node, and the controller is one of *v1.ConfigMap: give a function that takes these": controller.References(secrets, func(*corev1.Node) []string { return nil }),
		} {
			_, err := controller.New(informer[*corev1.ConfigMap](w), options{
				Name: "c", Secondaries: []secondary{s}, Logger: discard,
			}, isCalled(new(calls)))
			if want = strings.TrimRight(want, " "); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
	})
}

// TestC02_AnOwnerWithoutANamespace.
func TestC02_AnOwnerWithoutANamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		node := create(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		var log calls
		c := control(w, informer[*corev1.Node](w), controller.Options[*corev1.Node]{
			Secondaries: []controller.Secondary{
				controller.Owns(informer[*corev1.Secret](w)),
			},
		}, func(_ context.Context, r controller.Request[*corev1.Node]) (controller.Result, error) {
			log.add("%s in %q, %s", r.Name(), r.Namespace(), r.Reasons[0])
			return controller.Result{}, nil
		})
		stop := start(w, c)
		log.expect(t, `n in "", Initial nodes.v1 n`)
		create(w, ownedBy(secret("a", "s"), node, "v1", "Node"))
		log.expect(t, `n in "", Added secrets.v1 a/s`)
		fatal(t, stop())
	})
}

// TestC02_OneInformerInSeveralRoles: the informer of the objects is a secondary too, and another
// informer is a secondary twice.
func TestC02_OneInformerInSeveralRoles(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, withState(configMap("a", "x"), "a/y"))
		y := create(w, configMap("a", "y"))
		configMaps, secrets := informer[*corev1.ConfigMap](w), informer[*corev1.Secret](w)
		names := func(cm *corev1.ConfigMap) []string { return []string{cm.Data["state"]} }
		var log calls
		references := controller.References(secrets, names)
		c := control(w, configMaps, options{Secondaries: []secondary{
			controller.References(configMaps, names),
			references,
			controller.Maps(secrets, func(*corev1.Secret) iter.Seq[string] {
				return slices.Values([]string{"a/x", "a/none/at/all", ""})
			}),
		}}, isCalled(&log))
		stop := start(w, c)
		log.expect(t, "a/x", "a/y")
		update(w, withState(y, "2"))
		synctest.Wait()
		if got := slices.Sorted(slices.Values(log.take())); !slices.Equal(got, []string{"a/x", "a/y"}) {
			t.Errorf("calls: %q", got)
		}
		create(w, secret("a", "y"))
		synctest.Wait()
		if got := slices.Compact(log.take()); !slices.Equal(got, []string{"a/x"}) {
			t.Errorf("calls: %q", got)
		}
		fatal(t, c.RemoveSecondary(secrets))
		create(w, secret("a", "z"))
		log.expect(t)
		fatal(t, c.AddSecondary(references))
		log.expect(t, "a/x", "a/y")
		fatal(t, c.RemoveSecondary(configMaps))
		if err := c.RemoveSecondary(configMaps); err == nil {
			t.Error("the informer of the objects was removed")
		}
		fatal(t, stop())
	})
}

// TestC02_ASecondaryThatComesLate: the server begins to serve the type while the controller runs,
// and at first does not return its kind.
func TestC02_ASecondaryThatComesLate(t *testing.T) {
	inWorld(t, func(w *world) {
		owner := create(w, configMap("a", "x"))
		widgets, err := tidings.Dynamic(w.factory, schema.GroupVersionResource{
			Group: "example.com", Version: "v1", Resource: "widgets",
		}, tidings.Selection{Optional: true})
		fatal(t, err)
		var log calls
		c := newController(w, options{Secondaries: []secondary{
			controller.Owns(widgets).Optional(),
		}}, isCalled(&log))
		stop := start(w, c)
		log.expect(t, "a/x")
		time.Sleep(time.Minute)
		fatal(t, w.server.Register(apisim.Resource{
			Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true,
		}))
		time.Sleep(2 * time.Minute)
		log.expect(t, "a/x")
		widget := &unstructured.Unstructured{}
		widget.SetAPIVersion("example.com/v1")
		widget.SetKind("Widget")
		widget.SetNamespace("a")
		widget.SetName("w")
		create(w, ownedBy(widget, owner, "v1", "ConfigMap"))
		log.expect(t, "a/x")
		fatal(t, stop())
	})
}

// TestC02_AServerThatCannotBeAsked: the server is asked again for the resource of an informer.
func TestC02_AServerThatCannotBeAsked(t *testing.T) {
	inWorld(t, func(w *world) {
		widget := apisim.Resource{
			Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget", Namespaced: true,
		}
		fatal(t, w.server.Register(widget))
		widgets, err := tidings.Dynamic(w.factory, schema.GroupVersionResource{
			Group: "example.com", Version: "v1", Resource: "widgets",
		}, tidings.Selection{})
		fatal(t, err)
		create(w, configMap("a", "x"))
		var log calls
		c := newController(w, options{Secondaries: []secondary{
			controller.Owns(widgets),
		}}, isCalled(&log))
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, widgets.WaitForSync(w.ctx))
		met := 0
		refusal := w.server.Inject(apisim.Match{Verb: http.MethodGet},
			apisim.Call(func(*http.Request) { met++ }), apisim.Refuse(503, 0))
		stop := start(w, c)
		time.Sleep(5 * time.Second)
		log.expect(t)
		refusal.Lift()
		time.Sleep(30 * time.Second)
		log.expect(t, "a/x")
		if met == 0 {
			t.Error("the server was not asked")
		}
		fatal(t, stop())
	})
}

// TestC02_SecondariesThatComeWhileTheRunBegins are followed once, and removed ones are not waited
// for.
func TestC02_SecondariesThatComeWhileTheRunBegins(t *testing.T) {
	inWorld(t, func(w *world) {
		owner := create(w, configMap("a", "x"))
		delayed := w.server.Inject(apisim.Match{Verb: "watch", Resource: "nodes"}, apisim.Stall(0, 0))
		nodes, secrets := informer[*corev1.Node](w), informer[*corev1.Secret](w)
		var log calls
		c := newController(w, options{Secondaries: []secondary{
			controller.Reads(nodes),
		}}, isCalled(&log))
		stop := start(w, c)
		synctest.Wait()
		fatal(t, c.AddSecondary(controller.Owns(secrets)))
		synctest.Wait()
		log.expect(t)
		fatal(t, c.RemoveSecondary(nodes))
		log.expect(t, "a/x")
		create(w, ownedBy(secret("a", "s"), owner, "v1", "ConfigMap"))
		log.expect(t, "a/x")
		if handlers := secrets.Health().Handlers; len(handlers) != 1 {
			t.Errorf("%d handlers, want 1", len(handlers))
		}
		fatal(t, stop())
		synctest.Wait()
		if handlers := secrets.Health().Handlers; len(handlers) != 0 {
			t.Errorf("%d handlers are left", len(handlers))
		}
		delayed.Lift()
	})
}

// TestC02_ANewHistory of the server, as after the restoring of a backup: every key is called, and
// writes that the new history does not have hold nothing back.
func TestC02_ANewHistory(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, withState(configMap("a", "x"), "1"))
		create(w, configMap("a", "y"))
		backup := w.server.Snapshot()
		var log calls
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s %s", r.Key, r.Object.Data["state"])
			if r.Object.Data["state"] == "1" {
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "2"), updateNow)
				return controller.Result{}, err
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(log.take()); got != 3 {
			t.Errorf("%d calls, want 3", got)
		}
		for range 20 {
			update(w, labelled(create(w, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "a", GenerateName: "s",
			}}), "1"))
		}
		w.server.Rewind(backup)
		w.server.CutConnections()
		time.Sleep(15 * time.Minute) // until the silence is noticed
		synctest.Wait()
		got := log.take()
		slices.Sort(got)
		if want := []string{"a/x 1", "a/x 2", "a/y "}; !slices.Equal(slices.Compact(got), want) {
			t.Errorf("calls: %q", got)
		}
		fatal(t, stop())
	})
}
