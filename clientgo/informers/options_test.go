package informers

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// selectWeb is a TweakListOptionsFunc.
func selectWeb(o *metav1.ListOptions) { o.LabelSelector = "app=web" }

// TestOptionsApplyInOrder gives the same option twice.
func TestOptionsApplyInOrder(t *testing.T) {
	f := NewSharedInformerFactoryWithOptions(nil, time.Second,
		WithNamespace("a"), WithNamespace("b"),
		WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Minute, &corev1.Node{}: time.Minute}),
		WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Hour}),
	).(*sharedInformerFactory)
	if f.options.Namespace != "b" {
		t.Errorf("namespace %q, want that of the later option", f.options.Namespace)
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

// TestWithTransform sets a transform on informers of both kinds.
func TestWithTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(append(objects(pod("a", "one", "web")),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s", Labels: map[string]string{"app": "web"}}})...)
		f := NewSharedInformerFactoryWithOptions(client, 0, WithTransform(mark))
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

// TestTransformOnRunningInformer: a transform that comes too late is reported, and the informer
// is shared nevertheless.
func TestTransformOnRunningInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"))...)
		reported := reportedErrors(t)
		first := NewSharedInformerFactory(client, 0)
		running := first.Core().V1().Pods().Informer()
		start(t, first)
		f := NewSharedInformerFactoryWithOptions(client, 0, WithTransform(mark))
		got := f.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return running })
		if got != running || reported.Load() != 1 {
			t.Errorf("another informer: %t, %d errors are reported, want one", got != running, reported.Load())
		}
	})
}

// TestResync has the default period, that of one type, and that of NewFor's options, which
// apply after its parameters.
func TestResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(append(objects(pod("a", "one", "web")), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})...)
		never := WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Node{}: 0})
		f := NewSharedInformerFactoryWithOptions(client, 10*time.Minute, never)
		f.InformerFor(&metav1.PartialObjectMetadata{}, func(c kubernetes.Interface, _ time.Duration) cache.SharedIndexInformer {
			return NewFor[*corev1.Node](c, "ignored", InformerOptions{ResyncPeriod: time.Minute}, never)
		})
		var mu sync.Mutex // guards updates
		updates := map[string]int{}
		count := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			updates[what]++
		}
		for name, informer := range map[string]cache.SharedIndexInformer{
			"pod": f.Core().V1().Pods().Informer(), "node": f.Core().V1().Nodes().Informer(),
			"single": f.InformerFor(&metav1.PartialObjectMetadata{}, nil),
		} {
			if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { count(name + " added") },
				UpdateFunc: func(_, _ any) { count(name) },
			}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, f)
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		want := map[string]int{"pod": 6, "pod added": 1, "node added": 1, "single added": 1}
		if !maps.Equal(updates, want) {
			t.Errorf("the handlers received %v, want %v", updates, want)
		}
	})
}

// TestWithInformerName checks that the informer has the name, and that Shutdown releases it.
func TestWithInformerName(t *testing.T) {
	name, err := cache.NewInformerName("tidings-test-factory")
	if err != nil {
		t.Fatal(err)
	}
	f := NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, WithInformerName(name))
	var inGroup internalinterfaces.SharedInformerFactory = groups{f.(*sharedInformerFactory)}
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

// TestNewForName registers the resource under the name of the options.
func TestNewForName(t *testing.T) {
	name, err := cache.NewInformerName("tidings-test-newfor")
	if err != nil {
		t.Fatal(err)
	}
	defer name.Release()
	NewFor[*corev1.Pod](fake.NewClientset(), "", InformerOptions{InformerName: name})
	if name.WithResource(corev1.SchemeGroupVersion.WithResource("pods")).Reserved() {
		t.Error("the informer did not take its resource under the name")
	}
}

func TestNewForUnknownType(t *testing.T) {
	defer func() {
		said, _ := recover().(string)
		if !strings.Contains(said, "*informers.widget") || !strings.Contains(said, "ForGroup") {
			t.Errorf("the panic has %q, want the type and the remedy", said)
		}
	}()
	NewFor[*widget](fake.NewClientset(), "", InformerOptions{})
}
