package cache_test

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// watching runs an informer of ours whose server lists pods and sends events.
func watching(t *testing.T, list *corev1.PodList, events ...watch.Event) (*recorder, func(...watch.Event)) {
	t.Helper()
	w := watch.NewRaceFreeFake()
	server := &script{
		list:  func(metav1.ListOptions) (runtime.Object, error) { return list, nil },
		watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
	}
	informer := cache.NewSharedIndexInformerWithOptions(server, &corev1.Pod{}, noOptions)
	handler := new(recorder)
	addHandler(t, informer, handler)
	runSynced(t, informer)
	handler.take()
	then := func(events ...watch.Event) {
		send(w, events...)
		synctest.Wait()
	}
	then(events...)
	return handler, then
}

// TestP02_ReplaysThroughAListerWatcher: states that were told before do not come back,
// however late they come again, and what is new goes on.
func TestP02_ReplaysThroughAListerWatcher(t *testing.T) {
	bubble(t, func(t *testing.T) {
		handler, then := watching(t, podList("5", versioned("a", "5"), versioned("b", "4")))
		then(modified(versioned("a", "7")))
		then(modified(versioned("a", "5")), modified(versioned("a", "7")), modified(versioned("a", "5")))
		then(deleted(versioned("b", "8")))
		then(added(versioned("b", "4")), deleted(versioned("b", "8")))
		then(modified(versioned("a", "10")))
		handler.want(t, "update default/a 5→7", "delete default/b 8", "update default/a 7→10")
	})
}

// TestLeaseThatEnds: a server deletes what hangs on a lease under one version, and is a
// server still.
func TestLeaseThatEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		handler, then := watching(t, podList("5", versioned("a", "3"), versioned("b", "4"), versioned("c", "5")))
		then(deleted(versioned("a", "6")), deleted(versioned("b", "6")))
		then(modified(versioned("c", "7")), modified(versioned("c", "5")))
		handler.want(t, "delete default/a 6", "delete default/b 6", "update default/c 5→7")
	})
}

// changer is how a test changes the objects of a fake.
type changer interface {
	Create(gvr schema.GroupVersionResource, obj runtime.Object, ns string, o ...metav1.CreateOptions) error
	Update(gvr schema.GroupVersionResource, obj runtime.Object, ns string, o ...metav1.UpdateOptions) error
	Delete(gvr schema.GroupVersionResource, ns, name string, o ...metav1.DeleteOptions) error
}

// undeclared is a lister and watcher made of functions, as programs write them: it does not
// say that it is a fake, and refuses streamed lists as old servers do.
func undeclared(list func(context.Context, metav1.ListOptions) (runtime.Object, error), open func(context.Context, metav1.ListOptions) (watch.Interface, error)) clientgo.ListerWatcher {
	return &clientgo.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if o.SendInitialEvents != nil {
			return nil, apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil)
		}
		return open(ctx, o)
	}}
}

// fakeOfPods is one of client-go's fakes: what lists and watches it, and what changes it.
type fakeOfPods struct {
	lw      clientgo.ListerWatcher
	changer changer
	example runtime.Object
	convert func(*corev1.Pod) runtime.Object
}

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

var fakesOfPods = map[string]func() fakeOfPods{
	"clientset": func() fakeOfPods {
		client := fake.NewClientset()
		pods := client.CoreV1().Pods("")
		return fakeOfPods{undeclared(
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }, pods.Watch),
			client.Tracker(), &corev1.Pod{}, func(p *corev1.Pod) runtime.Object { return p }}
	},
	"dynamic": func() fakeOfPods {
		client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
		pods := client.Resource(podResource)
		return fakeOfPods{undeclared(
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }, pods.Watch),
			client.Tracker(), &unstructured.Unstructured{}, func(p *corev1.Pod) runtime.Object {
				u := &unstructured.Unstructured{}
				u.SetAPIVersion("v1")
				u.SetKind("Pod")
				copyMetadata(p, u)
				return u
			}}
	},
	"metadata": func() fakeOfPods {
		s := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(s); err != nil {
			panic(err)
		}
		client := metadatafake.NewSimpleMetadataClient(s)
		pods := client.Resource(podResource)
		return fakeOfPods{undeclared(
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) }, pods.Watch),
			client.Tracker(), &metav1.PartialObjectMetadata{}, func(p *corev1.Pod) runtime.Object {
				m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
				copyMetadata(p, m)
				return m
			}}
	},
}

func copyMetadata(from *corev1.Pod, to metav1.Object) {
	to.SetNamespace(from.Namespace)
	to.SetName(from.Name)
	to.SetUID(from.UID)
	to.SetLabels(from.Labels)
	to.SetResourceVersion(from.ResourceVersion)
}

// TestUndeclaredFakes leads objects through their lives in client-go's fakes, which do not say
// here that they are fakes, numbered as programs number them. Every change arrives.
func TestUndeclaredFakes(t *testing.T) {
	counter := map[string]int{}
	for numbering, version := range map[string]func(name string) string{
		"none":               func(string) string { return "" },
		"zero":               func(string) string { return "0" },
		"one for all":        func(string) string { return "1" },
		"a high one for all": func(string) string { return "999" },
		"no number":          func(string) string { return "v1" },
		"one per object": func(name string) string {
			counter[name]++
			return string(rune('0' + counter[name]))
		},
	} {
		for kind, newFake := range fakesOfPods {
			t.Run(kind+"/"+numbering, func(t *testing.T) {
				both(t, func(t *testing.T, newInformer newInformerFunc) {
					clear(counter)
					f := newFake()
					state := func(name, n string) runtime.Object {
						p := labelled(name, n)
						p.ResourceVersion = version(name)
						return f.convert(p)
					}
					must(t, f.changer.Create(podResource, state("a", "1"), "default"))
					informer := newInformer(f.lw, f.example, noOptions)
					runSynced(t, informer)
					holds := func(what string, want map[string]string) {
						t.Helper()
						synctest.Wait()
						wantLabels(t, what, informer.GetStore(), want)
					}
					must(t, f.changer.Update(podResource, state("a", "2"), "default"))
					must(t, f.changer.Create(podResource, state("b", "1"), "default"))
					holds("a change and an object", map[string]string{"default/a": "2", "default/b": "1"})
					must(t, f.changer.Update(podResource, state("a", "3"), "default"))
					must(t, f.changer.Update(podResource, state("b", "2"), "default"))
					holds("two changes", map[string]string{"default/a": "3", "default/b": "2"})
					must(t, f.changer.Delete(podResource, "default", "a"))
					must(t, f.changer.Delete(podResource, "default", "b"))
					holds("two deletes", nil)
					clear(counter)
					must(t, f.changer.Create(podResource, state("a", "1"), "default"))
					must(t, f.changer.Create(podResource, state("b", "4"), "default"))
					holds("both anew", map[string]string{"default/a": "1", "default/b": "4"})
				})
			})
		}
	}
}

// wantLabels compares the labels n of what a store holds.
func wantLabels(t *testing.T, what string, store clientgo.Store, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, obj := range store.List() {
		m, err := meta.Accessor(obj)
		must(t, err)
		got[m.GetNamespace()+"/"+m.GetName()] = m.GetLabels()["n"]
	}
	if len(got) != len(want) {
		t.Errorf("after %s the cache holds %v, want %v", what, got, want)
		return
	}
	for key, n := range want {
		if got[key] != n {
			t.Errorf("after %s the cache holds %v, want %v", what, got, want)
			return
		}
	}
}
