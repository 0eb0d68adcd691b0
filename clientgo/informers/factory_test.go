package informers

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
)

var (
	podType        = reflect.TypeFor[*corev1.Pod]()
	deploymentType = reflect.TypeFor[*appsv1.Deployment]()
)

// TestFactoryFollows reads what is there at the start and what comes later.
func TestFactoryFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"))...)
		f := NewSharedInformerFactory(client, 0)
		pods := f.Core().V1().Pods()
		var added, updated, deleted []string
		if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { added = append(added, o.(*corev1.Pod).Name) },
			UpdateFunc: func(_, o any) { updated = append(updated, o.(*corev1.Pod).Name) },
			DeleteFunc: func(o any) { deleted = append(deleted, o.(*corev1.Pod).Name) },
		}); err != nil {
			t.Fatal(err)
		}
		start(t, f)
		checkKeys(t, pods.Informer().GetStore(), "a/one")

		ctx := t.Context()
		if _, err := client.CoreV1().Pods("b").Create(ctx, pod("b", "two", "web"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		checkKeys(t, pods.Informer().GetStore(), "a/one", "b/two")
		if _, err := client.CoreV1().Pods("b").Update(ctx, pod("b", "two", "db"), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := client.CoreV1().Pods("a").Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		checkKeys(t, pods.Informer().GetStore(), "b/two")
		if got := strings.Join(added, " "); got != "one two" {
			t.Errorf("the handler was told of the adds %q, want one and two", got)
		}
		if got := strings.Join(updated, " "); got != "two" {
			t.Errorf("the handler was told of the updates %q, want two", got)
		}
		if got := strings.Join(deleted, " "); got != "one" {
			t.Errorf("the handler was told of the deletes %q, want one", got)
		}
	})
}

func TestFactoryLister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewSharedInformerFactory(fake.NewClientset(objects(pod("a", "one", "web"), pod("b", "two", "web"), pod("b", "three", "db"))...), 0)
		lister := f.Core().V1().Pods().Lister()
		start(t, f)
		if got, err := lister.Pods("b").Get("two"); err != nil || got.Name != "two" {
			t.Errorf("Get: %v, %v", got, err)
		}
		if _, err := lister.Pods("b").Get("one"); !apierrors.IsNotFound(err) {
			t.Errorf("Get of another namespace's pod: %v, want not found", err)
		}
		if got, err := lister.Pods("b").List(labels.Everything()); err != nil || len(got) != 2 {
			t.Errorf("List of a namespace: %d pods, %v; want 2", len(got), err)
		}
		web := labels.SelectorFromSet(labels.Set{"app": "web"})
		if got, err := lister.List(web); err != nil || len(got) != 2 {
			t.Errorf("List by label: %d pods, %v; want 2", len(got), err)
		}
	})
}

// TestFactoryShares asks for one type in each way that there is.
func TestFactoryShares(t *testing.T) {
	f := NewSharedInformerFactory(fake.NewClientset(), 0)
	first := f.Core().V1().Pods().Informer().GetStore()
	if f.Core().V1().Pods().Informer().GetStore() != first {
		t.Error("a second call of the accessor has another informer")
	}
	generic, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
	if err != nil {
		t.Fatal(err)
	}
	if generic.Informer().GetStore() != first {
		t.Error("ForResource has another informer than the accessor")
	}
	byType := f.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		t.Error("InformerFor makes an informer for a type that has one")
		return nil
	})
	if byType.GetStore() != first {
		t.Error("InformerFor has another informer than the accessor")
	}
}

// TestInformerForRunsNewFunc checks that a caller's function decides, and gets what it
// needs for it.
func TestInformerForRunsNewFunc(t *testing.T) {
	client := fake.NewClientset()
	f := NewSharedInformerFactoryWithOptions(client, time.Minute,
		WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Node{}: time.Hour}))
	var own cache.SharedIndexInformer
	newFunc := func(want time.Duration) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			if c != kubernetes.Interface(client) || resync != want {
				t.Errorf("newFunc is called with %v and %v, want the factory's client and %v", c, resync, want)
			}
			own = cache.NewSharedIndexInformer(&cache.ListWatch{}, nil, resync, cache.Indexers{})
			return own
		}
	}
	if got := f.InformerFor(&corev1.Pod{}, newFunc(time.Minute)); got != own || own == nil {
		t.Error("InformerFor returns something else than newFunc")
	}
	if f.Core().V1().Pods().Informer().GetStore() != own.GetStore() {
		t.Error("the accessor does not share the informer that newFunc made")
	}
	f.InformerFor(&corev1.Node{}, newFunc(time.Hour))
}

// TestStartTwice starts what was asked for later, and nothing a second time.
func TestStartTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"))...)
		f := NewSharedInformerFactory(client, 0)
		f.Core().V1().Pods().Informer()
		ctx := runningContext(t, f)
		f.Start(ctx.Done())
		f.Start(ctx.Done())
		synctest.Wait()
		if got := count(client, "list", "pods"); got != 1 {
			t.Errorf("pods are listed %d times, want once", got)
		}
		deployments := f.Apps().V1().Deployments().Informer()
		synctest.Wait()
		if deployments.HasSynced() || count(client, "list", "deployments") != 0 {
			t.Error("an informer that was asked for after Start runs without another Start")
		}
		f.StartWithContext(ctx)
		synctest.Wait()
		if !deployments.HasSynced() {
			t.Error("another Start does not start what was asked for meanwhile")
		}
		if got := count(client, "list", "pods"); got != 1 {
			t.Errorf("pods are listed %d times, want once", got)
		}
	})
}

// count returns how often a fake was asked for a verb of a resource.
func count(client *fake.Clientset, verb, resource string) int {
	n := 0
	for _, action := range client.Actions() {
		if action.Matches(verb, resource) {
			n++
		}
	}
	return n
}

func TestStartThroughGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewSharedInformerFactory(fake.NewClientset(), 0).(*factory)
		pods := f.Core().V1().Pods().Informer()
		builtin{f}.Start(runningContext(t, f).Done())
		synctest.Wait()
		if !pods.HasSynced() {
			t.Error("the factory that the groups have does not start informers")
		}
	})
}

// TestShutdown checks that it waits, and that nothing starts after it.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		f := NewSharedInformerFactory(client, 0)
		f.Shutdown() // nothing runs: it returns at once

		f = NewSharedInformerFactory(client, 0)
		pods := f.Core().V1().Pods().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		f.StartWithContext(ctx)
		ended := make(chan struct{})
		for range 2 {
			go func() {
				f.Shutdown()
				ended <- struct{}{}
			}()
		}
		synctest.Wait()
		select {
		case <-ended:
			t.Error("Shutdown returns while an informer runs")
		default:
		}
		nodes := f.Core().V1().Nodes().Informer()
		f.StartWithContext(ctx)
		synctest.Wait()
		if nodes.HasSynced() || count(client, "list", "nodes") != 0 {
			t.Error("an informer is started after Shutdown")
		}
		cancel()
		<-ended
		<-ended
		if !pods.IsStopped() {
			t.Error("Shutdown returned before the informer stopped")
		}
		f.Shutdown()
	})
}

func TestWaitForCacheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		reportedErrors(t)
		var available atomic.Bool
		client.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !available.Load(), nil, errors.New("not available")
		})
		f := NewSharedInformerFactory(client, 0)
		f.Core().V1().Pods().Informer()
		f.Apps().V1().Deployments().Informer()
		running := runningContext(t, f)

		if got := f.WaitForCacheSyncWithContext(running); len(got.Synced) != 0 || got.Err != nil || got.AsError() != nil {
			t.Errorf("nothing is started, and the result is %v", got)
		}
		f.StartWithContext(running)
		f.Core().V1().Nodes().Informer() // not started, so not waited for
		gaveUp := errors.New("gave up")
		ctx, cancel := context.WithTimeoutCause(running, time.Minute, gaveUp)
		defer cancel()
		got := f.WaitForCacheSyncWithContext(ctx)
		want := map[reflect.Type]bool{podType: true, deploymentType: false}
		if !reflect.DeepEqual(got.Synced, want) {
			t.Errorf("synced: %v, want %v", got.Synced, want)
		}
		if !errors.Is(got.AsError(), gaveUp) || !strings.Contains(got.AsError().Error(), deploymentType.String()) {
			t.Errorf("error %v, want the cause of the context and the type", got.AsError())
		}
		if synced := f.WaitForCacheSync(ctx.Done()); !reflect.DeepEqual(synced, want) {
			t.Errorf("WaitForCacheSync: %v, want %v", synced, want)
		}

		available.Store(true)
		got = f.WaitForCacheSyncWithContext(soon(t))
		want[deploymentType] = true
		if !reflect.DeepEqual(got.Synced, want) || got.Err != nil {
			t.Errorf("in the end: %v, want %v and no error", got, want)
		}
	})
}

// TestConcurrentUse has goroutines ask, start and wait at the same time, for the race
// detector and for one informer per type in the end.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"))...)
		f := NewSharedInformerFactory(client, 0)
		ctx := runningContext(t, f)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for _, r := range resources[:20] {
					if _, err := f.ForResource(r.gvr); err != nil {
						t.Error(err)
					}
					f.StartWithContext(ctx)
				}
				if err := f.WaitForCacheSyncWithContext(soon(t)).AsError(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		checkKeys(t, f.Core().V1().Pods().Informer().GetStore(), "a/one")
		if got := count(client, "list", "pods"); got != 1 {
			t.Errorf("pods are listed %d times, want once", got)
		}
	})
}

func TestForResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewSharedInformerFactory(fake.NewClientset(objects(pod("a", "one", "web"))...), 0)
		pods, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
		if err != nil {
			t.Fatal(err)
		}
		start(t, f)
		if got, err := pods.Lister().ByNamespace("a").Get("one"); err != nil || got.(*corev1.Pod).Name != "one" {
			t.Errorf("Get: %v, %v", got, err)
		}
		_, err = pods.Lister().ByNamespace("a").Get("two")
		if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "pods") {
			t.Errorf("Get of nothing: %v, want not found, with the resource", err)
		}
		if _, ok := pods.Informer().(cache.TypedSharedIndexInformer[*corev1.Pod]); !ok {
			t.Error("the informer lacks the typed methods that client-go's has")
		}
	})
}

func TestForResourceUnknown(t *testing.T) {
	f := NewSharedInformerFactory(fake.NewClientset(), 0)
	got, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("crontabs"))
	if err == nil || got != nil {
		t.Fatalf("an unknown resource gives %v and %v, want an error alone", got, err)
	}
	if !strings.HasPrefix(err.Error(), "no informer found for /v1, Resource=crontabs") || !strings.Contains(err.Error(), "dynamicinformer") {
		t.Errorf("%q does not say what is missing and what to do", err)
	}
}
