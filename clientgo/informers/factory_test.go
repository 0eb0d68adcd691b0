package informers

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"k8s.io/klog/v2"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/factory"
)

var (
	podType        = reflect.TypeFor[*corev1.Pod]()
	deploymentType = reflect.TypeFor[*appsv1.Deployment]()
)

// TestFactoryShares requests one type in each possible way.
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

// TestInformerForRunsNewFunc: the caller's function decides. The function receives the factory's
// client and resync period.
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

// TestWaitForCacheSync checks the error, which WaitForCacheSync of the other factories does not
// have.
func TestWaitForCacheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		reportedErrors(t)
		client.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("not available")
		})
		f := NewSharedInformerFactory(client, 0)
		f.Core().V1().Pods().Informer()
		f.Apps().V1().Deployments().Informer()
		running := runningContext(t, f)
		if got := f.WaitForCacheSyncWithContext(running); len(got.Synced) != 0 || got.AsError() != nil {
			t.Errorf("nothing is started, and the result is %v", got)
		}
		f.StartWithContext(running)
		gaveUp := errors.New("gave up")
		ctx, cancel := context.WithTimeoutCause(running, time.Minute, gaveUp)
		defer cancel()
		got := f.WaitForCacheSyncWithContext(ctx)
		if want := map[reflect.Type]bool{podType: true, deploymentType: false}; !maps.Equal(got.Synced, want) {
			t.Errorf("synced: %v, want %v", got.Synced, want)
		}
		if !errors.Is(got.AsError(), gaveUp) || !strings.Contains(got.AsError().Error(), deploymentType.String()) {
			t.Errorf("error %v, want the cause of the context and the type", got.AsError())
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
		t.Errorf("%q does not have the resource and the remedy", err)
	}
}

// TestGroupOnPublicFactory makes one of client-go's groups on the factory, as programs do
// that have a namespace or a selection of their own for it.
func TestGroupOnPublicFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"), pod("a", "two", "db"), pod("b", "three", "web"))...)
		f := NewSharedInformerFactory(client, 0)
		own := coreinformers.New(f, "a", selectWeb).Pods().Informer()
		if f.Core().V1().Pods().Informer().GetStore() != own.GetStore() {
			t.Error("the informer of a group on the public factory is not shared")
		}
		start(t, f)
		checkKeys(t, own.GetStore(), "a/one")
	})
}

// TestWhoseInformer checks which informers are Tidings', by the way that they are requested and
// by the client. A clientset around a fake of rest.Interface has no source of ours.
func TestWhoseInformer(t *testing.T) {
	real, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	around := kubernetes.New(&restfake.RESTClient{Client: http.DefaultClient})
	for name, client := range map[string]kubernetes.Interface{"clientset": real, "around a fake": around, "fake": fake.NewClientset()} {
		f := NewSharedInformerFactory(client, 0)
		generic, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("nodes"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := generic.Informer().(cache.TypedSharedIndexInformer[*corev1.Node]); !ok {
			t.Error("the informer lacks the typed methods that client-go's has")
		}
		single := NewFilteredFor[*corev1.Pod](client, "", 0, nil, nil)
		if _, ok := single.(coreinformers.PodIndexInformer); !ok {
			t.Error("the informer lacks the typed methods that client-go's has")
		}
		for way, informer := range map[string]cache.SharedInformer{
			"the accessor": f.Core().V1().Pods().Informer(), "ForResource": generic.Informer(), "NewFor": single,
		} {
			if _, ok := tidingscache.HealthOf(informer); !ok {
				t.Errorf("%s over a %s has client-go's informer", way, name)
			}
		}
		theirs := coreinformers.New(f, "a", nil).Services().Informer()
		if _, ok := tidingscache.HealthOf(theirs); ok {
			t.Errorf("the public InformerFor over a %s does not run its caller's function", name)
		}
		r, _ := resourceOf(&corev1.Pod{})
		if own, why := r.ownSource(client); (own != nil) != (name == "clientset") || (why == "") != (own != nil) {
			t.Errorf("over a %s, our own source is used: %t, because %q", name, own != nil, why)
		}
		var log strings.Builder
		ended, end := context.WithCancel(klog.NewContext(t.Context(), funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{Verbosity: 4})))
		end()
		single.RunWithContext(ended)
		h, _ := tidingscache.HealthOf(single)
		if logged := strings.Contains(log.String(), "The informer reads through the program's client"); logged == (name == "clientset") || logged != (h.Fallback != "") {
			t.Errorf("over a %s, the health says %q, and the log %s", name, h.Fallback, log.String())
		}
		lw := r.listerWatcher(client, factory.Spec{})
		if listed := watchlist.DoesClientNotSupportWatchListSemantics(lw); listed != (name == "fake") {
			t.Errorf("over a %s, lists cannot be streamed: %t", name, listed)
		}
	}
}

// TestWatchFollowsList creates an object between the list and the watch of a fake: it must
// be delivered once.
func TestWatchFollowsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"))...)
		created := make(chan struct{})
		client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
			<-created
			return false, nil, nil
		})
		f := NewSharedInformerFactory(client, 0)
		pods := f.Core().V1().Pods().Informer()
		var adds, others int
		registration, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { adds++ },
			UpdateFunc: func(_, _ any) { others++ },
			DeleteFunc: func(any) { others++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		f.StartWithContext(runningContext(t, f))
		if err := f.WaitForCacheSyncWithContext(soon(t)).AsError(); err != nil {
			t.Fatal(err)
		}
		checkKeys(t, pods.GetStore(), "a/one")
		if err := client.Tracker().Add(pod("a", "two", "web")); err != nil {
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
