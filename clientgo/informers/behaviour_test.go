package informers

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
)

// TestStreamedListsByGate syncs over HTTP with client-go's feature gate on and off.
func TestStreamedListsByGate(t *testing.T) {
	for enabled, verb := range map[bool]string{true: "watch", false: "list"} {
		t.Run(verb, func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, enabled)
			synctest.Test(t, func(t *testing.T) {
				server, client := newServer(t)
				create(t, server, pod("default", "one", "web"))
				f := NewSharedInformerFactory(client, 0)
				pods := f.Core().V1().Pods().Informer()
				start(t, f)
				checkKeys(t, pods.GetStore(), "default/one")
				requests := server.Requests()
				if len(requests) == 0 || requests[0].Verb != verb {
					t.Fatalf("the requests are %v, want a %s first", requests, verb)
				}
				for _, request := range requests {
					if streams := request.Query.Get("sendInitialEvents") == "true"; streams != enabled {
						t.Errorf("%s asks for %v with the gate at %t", request.Verb, request.Query, enabled)
					}
				}
			})
		})
	}
}

// TestFakeIsListed syncs with a fake although the gate is on, because fakes say that they
// cannot stream lists.
func TestFakeIsListed(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, true)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"))...)
		f := NewSharedInformerFactory(client, 0)
		pods := f.Core().V1().Pods().Informer()
		start(t, f)
		checkKeys(t, pods.GetStore(), "a/one")
		if got := count(client, "list", "pods"); got != 1 {
			t.Errorf("the fake is listed %d times, want once", got)
		}
	})
}

// TestWatchFollowsList creates an object between the list and the watch of a fake: it must
// be delivered once.
func TestWatchFollowsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"))...)
		created := make(chan struct{})
		f := NewSharedInformerFactory(client, 0)
		pods := f.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			pods := c.CoreV1().Pods(metav1.NamespaceAll)
			return tidingscache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					<-created
					return pods.Watch(ctx, o)
				},
			}, c), &corev1.Pod{}, resync, nil)
		})
		var adds, others int
		registration, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { adds++ },
			UpdateFunc: func(_, _ any) { others++ },
			DeleteFunc: func(any) { others++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx := runningContext(t, f)
		f.StartWithContext(ctx)
		if err := f.WaitForCacheSyncWithContext(soon(t)).AsError(); err != nil {
			t.Fatal(err)
		}
		checkKeys(t, pods.GetStore(), "a/one")
		if _, err := client.CoreV1().Pods("a").Create(ctx, pod("a", "two", "web"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		close(created)
		synctest.Wait()
		checkKeys(t, pods.GetStore(), "a/one", "a/two")
		if adds != 2 || others != 0 || !registration.HasSynced() {
			t.Errorf("%d adds, %d other calls, handler synced: %t; want 2, none, true", adds, others, registration.HasSynced())
		}
	})
}

// TestUserAgent checks that requests are made by the clientset's REST client.
func TestUserAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		agents := map[string]bool{}
		server, err := apisim.New(apisim.Options{Middleware: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				agents[r.UserAgent()] = true
				mu.Unlock()
				next.ServeHTTP(w, r)
			})
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
		config := server.Config()
		config.UserAgent = "roller/1.0"
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		f := NewSharedInformerFactory(client, 0)
		f.Apps().V1().Deployments().Informer()
		start(t, f)
		mu.Lock()
		defer mu.Unlock()
		if len(agents) != 1 || !agents["roller/1.0"] {
			t.Errorf("the user agents are %v, want that of the clientset", agents)
		}
	})
}
