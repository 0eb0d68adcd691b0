package ctrlruntime_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
)

// labelled sets a label of an object, which is a change.
func labelled(o client.Object, value string) client.Object {
	o.SetLabels(map[string]string{"written-by": value})
	return o
}

// patched returns an object with a label, and a patch from the state before.
func patched(o client.Object, value string) (client.Object, client.Patch) {
	patch := client.MergeFrom(o.DeepCopyObject().(client.Object))
	return labelled(o, value), patch
}

// TestC03_ReadsAfterEachWrite: in each form, a Get after each kind of write has its state.
func TestC03_ReadsAfterEachWrite(t *testing.T) {
	for name, made := range map[string]func() client.Object{
		"built-in": func() client.Object { return configMap("shop", "x", nil) },
		"custom": func() client.Object {
			return &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}}
		},
		"maps": func() client.Object { return widget("shop", "x", 1, nil) },
		"odd kind": func() client.Object {
			return &AllowList{Widget: Widget{ObjectMeta: configMap("shop", "x", nil).ObjectMeta}}
		},
		"odd maps": func() client.Object { return custom(allowListKind, "shop", "x", 1, nil) },
	} {
		resource := widgetResource
		switch {
		case name == "built-in":
			resource = configMapResource
		case strings.HasPrefix(name, "odd"):
			resource = allowListResource
		}
		t.Run(name, func(t *testing.T) {
			withClient(t, cache.Options{}, late, func(w *clientWorld) {
				o, ctx := made(), w.Context()
				w.absent(o)
				w.must(w.client.Create(ctx, o))
				w.reads(o, false, late, late)
				w.must(w.client.Update(ctx, labelled(o, "update")))
				w.reads(o, false, late, late)
				o, patch := patched(o, "patch")
				w.must(w.client.Patch(ctx, o, patch))
				w.reads(o, false, late, late)
				applied := &unstructured.Unstructured{}
				gvk, err := w.client.GroupVersionKindFor(o)
				w.must(err)
				applied.SetGroupVersionKind(gvk)
				applied.SetNamespace("shop")
				applied.SetName("x")
				applied.SetAnnotations(map[string]string{"written-by": "apply"})
				w.must(w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
					client.FieldOwner("test"), client.ForceOwnership))
				stored, err := w.server.Get(ctx, resource, "shop", "x")
				w.must(err)
				o.SetResourceVersion(stored.(client.Object).GetResourceVersion()) // the answer is not kept
				w.reads(o, false, late, late)
				w.must(w.client.Delete(ctx, o))
				w.reads(o, true, late, late)
				w.reads(o, true, 0, 0)
			})
		})
	}
}

// TestC03_WhichReadsWait: Get of the object, and lists of its namespace and of all namespaces.
func TestC03_WhichReadsWait(t *testing.T) {
	inShop := client.InNamespace("shop")
	for name, read := range map[string]struct {
		read  func(w *clientWorld) int
		want  int
		waits bool
	}{
		"list in the namespace": {func(w *clientWorld) int {
			n, _ := w.lists(&corev1.ConfigMapList{}, inShop)
			return n
		}, 1, true},
		"list of all": {func(w *clientWorld) int {
			n, _ := w.lists(&corev1.ConfigMapList{})
			return n
		}, 1, true},
		"list by a label": {func(w *clientWorld) int {
			n, _ := w.lists(&corev1.ConfigMapList{}, inShop, client.MatchingLabels{"color": "red"})
			return n
		}, 1, true},
		"list of metadata": {func(w *clientWorld) int {
			_, list := metadataOf(configMapKind)
			n, _ := w.lists(list, inShop)
			return n
		}, 1, true},
		"list of another Go type": {func(w *clientWorld) int {
			_, list := untypedOf(configMapKind)
			n, _ := w.lists(&ownList{*list.(*unstructured.UnstructuredList)}, inShop)
			return n
		}, 1, true},
		"list in another namespace": {func(w *clientWorld) int {
			n, _ := w.lists(&corev1.ConfigMapList{}, client.InNamespace("blog"))
			return n
		}, 0, false},
		"list of another type": {func(w *clientWorld) int {
			n, _ := w.lists(&corev1.SecretList{}, inShop)
			return n
		}, 0, false},
		"get of another object": {func(w *clientWorld) int {
			err := w.client.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: "y"}, &corev1.ConfigMap{})
			if !apierrors.IsNotFound(err) {
				w.Error(err)
			}
			return 0
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, cache.Options{}, late, func(w *clientWorld) {
				_, partial := metadataOf(configMapKind)
				_, untyped := untypedOf(configMapKind)
				w.warm(&corev1.ConfigMapList{}, &corev1.SecretList{}, partial, untyped)
				w.must(w.client.Create(w.Context(), configMap("shop", "x", map[string]string{"color": "red"})))
				n := 0
				d := took(func() { n = read.read(w) })
				if n != read.want || read.waits != (d == late) || !read.waits && d != 0 {
					t.Errorf("%d objects after %v, want %d, waits %v", n, d, read.want, read.waits)
				}
			})
		})
	}
}

// TestC03_TheFirstReadOfATypeSeesTheWrite: there was no informer when it was made.
func TestC03_TheFirstReadOfATypeSeesTheWrite(t *testing.T) {
	for name, newInformer := range map[string]newInformerFunc{
		"of NewCache": nil, "of NewInformer": tidingscache.NewSharedIndexInformer,
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, cache.Options{NewInformer: newInformer}, late, func(w *clientWorld) {
				m := configMap("shop", "x", nil)
				w.must(w.client.Create(w.Context(), m))
				w.reads(m, false, 0, late)
				lists := w.server.Requests().Of(apisim.Match{Verb: "list", Resource: "configmaps"})
				if len(lists) == 0 || lists[0].Query.Get("resourceVersion") != "" {
					t.Errorf("the first list may be old: %v", lists)
				}
			})
		})
	}
}

// TestC03_LastFinalizerOfAClient: the answer to the write that removes the last finalizer has the
// version before the write.
func TestC03_LastFinalizerOfAClient(t *testing.T) {
	withClient(t, cache.Options{}, late, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		m.Finalizers = []string{"example.com/held"}
		w.absent(m)
		w.must(w.client.Create(w.Context(), m))
		w.must(w.client.Delete(w.Context(), m))
		w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), m))
		if m.DeletionTimestamp == nil {
			t.Fatal("the deletion does not show")
		}
		m.Finalizers = nil
		w.must(w.client.Update(w.Context(), m))
		w.reads(m, true, late, late)
	})
}

// TestC03_AnotherUIDUnderTheName: an object was deleted, and another one made by the client, or by
// another program. The deleted one is never read again.
func TestC03_AnotherUIDUnderTheName(t *testing.T) {
	for name, again := range map[string]func(w *clientWorld){
		"own": func(w *clientWorld) {
			w.must(w.client.Create(w.Context(), configMap("shop", "x", nil)))
		},
		"another's": func(w *clientWorld) { w.create(configMap("shop", "x", nil)) },
	} {
		for _, leftOut := range []struct{ uid, version bool }{{true, false}, {true, true}} {
			o := cache.Options{DefaultTransform: leavingOut(leftOut.uid, leftOut.version, false)}
			t.Run(fmt.Sprintf("%s, left out: %+v", name, leftOut), func(t *testing.T) {
				withClient(t, o, late, func(w *clientWorld) {
					m := configMap("shop", "x", nil)
					w.absent(m)
					w.must(w.client.Create(w.Context(), labelled(m, "first")))
					w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), m.DeepCopy()))
					w.must(w.client.Delete(w.Context(), m))
					again(w)
					time.Sleep(2 * time.Second)
					read := m.DeepCopy()
					d := took(func() { w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), read)) })
					if isOwn := name == "own"; len(read.Labels) > 0 || isOwn && d > 0 || d > 11*time.Second {
						t.Errorf("the labels are %v, after %v", read.Labels, d)
					}
				})
			})
		}
		t.Run(name, func(t *testing.T) {
			withClient(t, cache.Options{}, late, func(w *clientWorld) {
				m := configMap("shop", "x", nil)
				w.absent(m)
				w.must(w.client.Create(w.Context(), m))
				w.reads(m, false, late, late)
				first := m.UID
				w.must(w.client.Delete(w.Context(), m))
				again(w)
				err := w.client.Get(w.Context(), client.ObjectKeyFromObject(m), m)
				if name == "own" && err != nil || err == nil && m.UID == first {
					t.Errorf("the UID is %s, that of the deleted object %s: %v", m.UID, first, err)
				}
			})
		})
	}
}

// TestC03_DeleteAllOf in two namespaces: the answers have no versions. The cache has a watch for
// each namespace, and one is late.
func TestC03_DeleteAllOf(t *testing.T) {
	in := map[string]cache.Config{"shop": {}, "blog": {}}
	for name, o := range map[string]cache.Options{
		"one cache": {}, "caches of namespaces": {DefaultNamespaces: in},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, o, 0, func(w *clientWorld) {
				w.server.Inject(apisim.Match{Verb: "watch", Namespace: "blog"},
					apisim.Stall(apisim.EachFrame, late))
				for _, namespace := range []string{"shop", "blog"} {
					for _, name := range []string{"a", "b", "c"} {
						w.create(configMap(namespace, name, nil))
					}
				}
				if n, _ := w.lists(&corev1.ConfigMapList{}); n != 6 {
					t.Fatalf("%d objects, want 6", n)
				}
				for _, namespace := range []string{"shop", "blog"} {
					w.must(w.client.DeleteAllOf(w.Context(), &corev1.ConfigMap{}, client.InNamespace(namespace)))
				}
				if n, d := w.lists(&corev1.ConfigMapList{}, client.InNamespace("shop")); n != 0 || d > 3*late {
					t.Errorf("%d objects in shop after %v", n, d)
				}
				if n, _ := w.lists(&corev1.ConfigMapList{}); n != 0 {
					t.Errorf("%d objects", n)
				}
			})
		})
	}
}

// TestC03_Subresources count for the object: an eviction, whose answer is a Status.
func TestC03_Subresources(t *testing.T) {
	withClient(t, cache.Options{}, late, func(w *clientWorld) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		w.absent(pod)
		w.must(w.client.Create(w.Context(), pod))
		pod.Status.Phase = corev1.PodRunning
		w.must(w.client.Status().Update(w.Context(), pod))
		read := &corev1.Pod{}
		w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(pod), read))
		if read.Status.Phase != corev1.PodRunning {
			t.Errorf("the phase is %q", read.Status.Phase)
		}
		w.must(w.client.SubResource("eviction").Create(w.Context(), pod, &policyv1.Eviction{
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
		}))
		w.reads(pod, true, 0, 3*late)
	})
}

// TestC03_UnknownOutcomes: the client does not know whether its write was applied. The next read
// waits until the server answers whether it was.
func TestC03_UnknownOutcomes(t *testing.T) {
	const timeout = 35 * time.Second // of a write, and a second
	for name, o := range map[string]struct {
		fault       apisim.Fault
		least, most time.Duration
	}{
		"an error after the write":  {apisim.RefuseApplied(500), time.Second, 2 * time.Second},
		"an error before the write": {apisim.Refuse(500, 0), time.Second, 2 * time.Second},
		"no answer":                 {apisim.CutBefore(0), timeout, timeout + time.Second},
		"a cut answer":              {apisim.CutWithin(0), 0, timeout + time.Second},
		"a short answer":            {apisim.Truncate(0), 0, timeout + time.Second},
		"applied later":             {apisim.ApplyLater(500*time.Millisecond, 504), timeout, timeout + time.Second},
		"an ended context":          {apisim.Delay(time.Hour), 2 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, cache.Options{}, late, func(w *clientWorld) {
				m := configMap("shop", "x", nil)
				w.absent(m)
				w.must(w.client.Create(w.Context(), m))
				w.reads(m, false, late, late)
				w.server.Inject(apisim.Match{Verb: "update", Times: 1}, o.fault)
				ctx, began := w.Context(), time.Now()
				if name == "an ended context" {
					ctx = w.within(time.Second)
				}
				err := w.client.Update(ctx, labelled(m.DeepCopy(), "2"))
				if err == nil && name != "a short answer" {
					t.Error("the write has no error")
				}
				var list corev1.ConfigMapList
				w.lists(&list)
				if d := time.Since(began); d < o.least || d > o.most {
					t.Errorf("the read has ended after %v, want %v to %v", d, o.least, o.most)
				}
				stored, err := apisim.Get[*corev1.ConfigMap](w.Context(), w.server, "shop", "x")
				w.must(err)
				if got := list.Items[0].ResourceVersion; got != stored.ResourceVersion {
					t.Errorf("version %s is read, the server has %s", got, stored.ResourceVersion)
				}
			})
		})
	}
}

// TestC03_ACreateWhoseNameIsNotKnown: the server makes it, and the answer is lost.
func TestC03_ACreateWhoseNameIsNotKnown(t *testing.T) {
	withClient(t, cache.Options{}, late, func(w *clientWorld) {
		w.warm(&corev1.ConfigMapList{})
		w.server.Inject(apisim.Match{Verb: "create", Times: 1}, apisim.RefuseApplied(500))
		m := configMap("shop", "", nil)
		m.GenerateName = "x-"
		if err := w.client.Create(w.Context(), m); err == nil {
			t.Fatal("the write has no error")
		}
		if n, d := w.lists(&corev1.ConfigMapList{}); n != 1 || d > 3*time.Second {
			t.Errorf("%d objects after %v", n, d)
		}
	})
}

// TestC03_AStatusForAnUpdate, as proxies send it, is no version: the server is asked.
func TestC03_AStatusForAnUpdate(t *testing.T) {
	withClient(t, cache.Options{}, late, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		w.absent(m)
		w.must(w.client.Create(w.Context(), m))
		w.server.Inject(apisim.Match{Verb: "update", Times: 1},
			apisim.Answer(func(answer http.ResponseWriter, _ *http.Request) {
				answer.Header().Set("Content-Type", "application/json")
				_, _ = answer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
			}))
		_ = w.client.Update(w.Context(), labelled(m.DeepCopy(), "2")) // decoding may fail
		w.reads(m, false, 0, 2*time.Second)
	})
}

// TestC03_ConflictsOfAClient: after a conflict, and after AlreadyExists, a read waits for the state
// of the other writer, but not longer than a second.
func TestC03_ConflictsOfAClient(t *testing.T) {
	for name, delay := range map[string]time.Duration{
		"the cache follows": late, "the cache does not follow": time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, cache.Options{}, delay, func(w *clientWorld) {
				m := configMap("shop", "x", nil)
				w.create(m)
				w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), m))
				w.update(labelled(m.DeepCopy(), "another"))
				if err := w.client.Update(w.Context(), labelled(m.DeepCopy(), "own")); !apierrors.IsConflict(err) {
					t.Fatal(err)
				}
				read := &corev1.ConfigMap{}
				d := took(func() { w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), read)) })
				if want := min(delay, time.Second); d != want {
					t.Errorf("the read took %v, want %v", d, want)
				}
				if isNew := read.Labels["written-by"] == "another"; isNew != (delay == late) {
					t.Errorf("the labels are %v", read.Labels)
				}

				w.create(configMap("shop", "y", nil))
				if err := w.client.Create(w.Context(), configMap("shop", "y", nil)); !apierrors.IsAlreadyExists(err) {
					t.Fatal(err)
				}
				var err error
				d = took(func() {
					err = w.client.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: "y"}, read)
				})
				if want := min(delay, time.Second); d != want || (err == nil) != (delay == late) {
					t.Errorf("the read of what exists took %v: %v", d, err)
				}
			})
		})
	}
}

// TestC03_DryRuns are not waited for.
func TestC03_DryRuns(t *testing.T) {
	withClient(t, cache.Options{}, time.Hour, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		w.create(m)
		w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), m))
		w.must(w.client.Update(w.Context(), labelled(m.DeepCopy(), "x"), client.DryRunAll))
		w.must(w.client.Create(w.Context(), configMap("shop", "y", nil), client.DryRunAll))
		w.must(w.client.Delete(w.Context(), m.DeepCopy(), client.DryRunAll))
		w.must(w.client.DeleteAllOf(w.Context(), m.DeepCopy(), client.InNamespace("shop"), client.DryRunAll))
		w.reads(m, false, 0, 0)
	})
}
