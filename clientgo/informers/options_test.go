package informers

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

// selectWeb is a TweakListOptionsFunc.
func selectWeb(o *metav1.ListOptions) { o.LabelSelector = "app=web" }

// TestWithNamespace also reads a type that has no namespace.
func TestWithNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(append(objects(pod("a", "one", "web"), pod("b", "two", "web")),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})...)
		f := NewSharedInformerFactoryWithOptions(client, 0, WithNamespace("b"))
		pods, nodes := f.Core().V1().Pods().Informer(), f.Core().V1().Nodes().Informer()
		start(t, f)
		checkKeys(t, pods.GetStore(), "b/two")
		checkKeys(t, nodes.GetStore(), "n")
		if _, err := client.CoreV1().Pods("a").Create(t.Context(), pod("a", "three", "web"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Pods("b").Create(t.Context(), pod("b", "four", "web"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		checkKeys(t, pods.GetStore(), "b/two", "b/four")
	})
}

// TestWithTweakListOptions checks what reaches the client, by both verbs.
func TestWithTweakListOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"), pod("a", "two", "db"))...)
		f := NewSharedInformerFactoryWithOptions(client, 0, WithTweakListOptions(selectWeb))
		pods := f.Core().V1().Pods().Informer()
		start(t, f)
		checkKeys(t, pods.GetStore(), "a/one")
		selected := map[string]string{}
		for _, action := range client.Actions() {
			switch action := action.(type) {
			case clienttesting.ListActionImpl:
				selected[action.Verb] = action.ListOptions.LabelSelector
			case clienttesting.WatchActionImpl:
				selected[action.Verb] = action.ListOptions.LabelSelector
			}
		}
		if selected["list"] != "app=web" || selected["watch"] != "app=web" {
			t.Errorf("the client is asked for %v, want app=web in list and watch", selected)
		}
	})
}

// TestTweakActsOnCopy checks that what a tweak does to one call's options is not there
// in the next.
func TestTweakActsOnCopy(t *testing.T) {
	r, _ := resourceOf(&corev1.Pod{})
	client := fake.NewClientset()
	var seen []string
	lw := r.listerWatcher(client, metav1.NamespaceAll, func(o *metav1.ListOptions) {
		seen = append(seen, o.LabelSelector)
		o.LabelSelector = "app=web"
	}).(cache.ListerWatcherWithContext)
	o := metav1.ListOptions{LabelSelector: "given"}
	if _, err := lw.ListWithContext(t.Context(), o); err != nil {
		t.Error(err)
	}
	w, err := lw.WatchWithContext(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	if !slices.Equal(seen, []string{"given", "given"}) || o.LabelSelector != "given" {
		t.Errorf("the tweak was given %q, and the caller's options are %q", seen, o.LabelSelector)
	}
}

func TestNewFilteredSharedInformerFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"), pod("b", "two", "web"), pod("b", "three", "db"))...)
		f := NewFilteredSharedInformerFactory(client, 0, "b", selectWeb)
		pods := f.Core().V1().Pods().Informer()
		start(t, f)
		checkKeys(t, pods.GetStore(), "b/two")
	})
}

// TestOptionsApplyInOrder gives the same option twice.
func TestOptionsApplyInOrder(t *testing.T) {
	f := NewSharedInformerFactoryWithOptions(nil, time.Second,
		WithNamespace("a"), WithNamespace("b"),
		WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Minute, &corev1.Node{}: time.Minute}),
		WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Hour}),
	).(*factory)
	if f.namespace != "b" {
		t.Errorf("namespace %q, want that of the later option", f.namespace)
	}
	for object, want := range map[runtime.Object]time.Duration{&corev1.Pod{}: time.Hour, &corev1.Node{}: time.Minute, &corev1.Secret{}: time.Second} {
		f.InformerFor(object, func(_ kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			if resync != want {
				t.Errorf("%T is resynced every %v, want %v", object, resync, want)
			}
			return nil
		})
	}
}

// TestWithTransform sets it on informers of both kinds.
func TestWithTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(append(objects(pod("a", "one", "web")),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s", Labels: map[string]string{"app": "web"}}})...)
		f := NewSharedInformerFactoryWithOptions(client, 0, WithTransform(func(o any) (any, error) {
			o.(metav1.Object).SetLabels(map[string]string{"seen": "yes"})
			return o, nil
		}))
		stores := map[string]cache.Store{
			"the accessor's": f.Core().V1().Pods().Informer().GetStore(),
			"newFunc's": f.InformerFor(&corev1.Secret{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				return NewFilteredFor[*corev1.Secret](c, metav1.NamespaceAll, resync, nil, nil)
			}).GetStore(),
		}
		start(t, f)
		for name, store := range stores {
			for _, o := range store.List() {
				if labels := o.(metav1.Object).GetLabels(); len(labels) != 1 || labels["seen"] != "yes" {
					t.Errorf("%s object has the labels %v, want those of the transform", name, labels)
				}
			}
			if len(store.List()) != 1 {
				t.Errorf("%s store has %d objects, want 1", name, len(store.List()))
			}
		}
	})
}

// TestTransformOnRunningInformer checks that a transform that comes too late is reported,
// and the informer shared nevertheless.
func TestTransformOnRunningInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"))...)
		reported := reportedErrors(t)
		running := NewFilteredFor[*corev1.Pod](client, metav1.NamespaceAll, 0, nil, nil)
		run(t, running)
		f := NewSharedInformerFactoryWithOptions(client, 0, WithTransform(func(o any) (any, error) { return o, nil }))
		got := f.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return running })
		if got != running {
			t.Error("InformerFor returns something else than newFunc")
		}
		if got := reported.count(); got != 1 {
			t.Errorf("%d errors are reported, want one", got)
		}
	})
}

// TestResync counts what handlers are told in an hour by the default period, and by that
// of one type.
func TestResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(append(objects(pod("a", "one", "web")),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})...)
		f := NewSharedInformerFactoryWithOptions(client, 10*time.Minute,
			WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Node{}: 0}))
		updates := map[string]int{}
		for name, informer := range map[string]cache.SharedIndexInformer{
			"pod": f.Core().V1().Pods().Informer(), "node": f.Core().V1().Nodes().Informer(),
		} {
			if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				UpdateFunc: func(_, _ any) { updates[name]++ },
			}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, f)
		advance(t, time.Hour+time.Minute)
		if updates["pod"] != 6 || updates["node"] != 0 {
			t.Errorf("updates without a change: %v, want 6 of the pod and none of the node", updates)
		}
	})
}

// advance lets virtual time pass.
func advance(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
	synctest.Wait()
}

// TestWithInformerName checks the name's way to the informer, and back at Shutdown.
func TestWithInformerName(t *testing.T) {
	name, err := cache.NewInformerName("tidings-test-factory")
	if err != nil {
		t.Fatal(err)
	}
	f := NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, WithInformerName(name))
	var inGroup internalinterfaces.SharedInformerFactory = builtin{f.(*factory)}
	if f.InformerName() != name || inGroup.InformerName() != name {
		t.Error("the factory does not have the name that it was given")
	}
	f.Core().V1().Pods().Informer()
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	if name.WithResource(pods).Reserved() {
		t.Error("the pod informer did not take its resource under the name")
	}
	nodes := name.WithResource(corev1.SchemeGroupVersion.WithResource("nodes"))
	if !nodes.Reserved() {
		t.Error("a resource that no informer has is taken under the name")
	}
	f.Shutdown()
	if nodes.Reserved() {
		t.Error("Shutdown keeps the name reserved")
	}
	again, err := cache.NewInformerName("tidings-test-factory")
	if err != nil {
		t.Fatalf("the name is not free after Shutdown: %v", err)
	}
	again.Release()
}
