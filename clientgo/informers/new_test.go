package informers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
)

// TestNilClientFillsStores does what tests of programs do with a factory without a client:
// fill the store of an informer that never runs.
func TestNilClientFillsStores(t *testing.T) {
	f := NewSharedInformerFactory(nil, 0)
	pods := f.Core().V1().Pods()
	if err := pods.Informer().GetStore().Add(pod("a", "one", "web")); err != nil {
		t.Fatal(err)
	}
	if got, err := pods.Lister().Pods("a").Get("one"); err != nil || got.Name != "one" {
		t.Errorf("Get: %v, %v", got, err)
	}
}

// TestNilClientFails runs informers without a client, and reads why they do not sync.
func TestNilClientFails(t *testing.T) {
	for name, client := range map[string]kubernetes.Interface{"nil": nil, "nil clientset": (*kubernetes.Clientset)(nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewSharedInformerFactory(client, 0)
				pods := f.Core().V1().Pods().Informer()
				var failures []error
				if err := pods.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
					failures = append(failures, err)
				}); err != nil {
					t.Fatal(err)
				}
				start(t, f)
				if pods.HasSynced() || len(failures) == 0 {
					t.Fatalf("synced: %v, failures: %v; want a failure", pods.HasSynced(), failures)
				}
				if !errors.Is(failures[0], errNilClient) || !strings.Contains(failures[0].Error(), "kubernetes.NewForConfig") {
					t.Errorf("the failure is %v, want that the client is nil and what to do", failures[0])
				}
			})
		})
	}
}

// TestNilClientWatch checks the other verb.
func TestNilClientWatch(t *testing.T) {
	r, _ := resourceOf(&corev1.Pod{})
	lw := r.listerWatcher(nil, "", nil).(cache.ListerWatcherWithContext)
	if w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errNilClient) {
		t.Errorf("watch is %v, %v; want that the client is nil", w, err)
	}
}

// TestStreamedListsAsClientSays checks that the source has no streamed lists where the
// client says that it has none, as fakes do.
func TestStreamedListsAsClientSays(t *testing.T) {
	real, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := resourceOf(&corev1.Pod{})
	if !watchlist.DoesClientNotSupportWatchListSemantics(r.listerWatcher(fake.NewClientset(), "", nil)) {
		t.Error("the source over a fake would stream lists")
	}
	if watchlist.DoesClientNotSupportWatchListSemantics(r.listerWatcher(real, "", nil)) {
		t.Error("the source over a clientset would not stream lists")
	}
}

// TestHasREST tells the clientsets that speak HTTP from those around fakes.
func TestHasREST(t *testing.T) {
	real, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if !hasREST(real) {
		t.Error("a clientset is not known to speak HTTP")
	}
	around := kubernetes.New(&restfake.RESTClient{Client: http.DefaultClient})
	for name, cs := range map[string]*kubernetes.Clientset{"around a fake": around, "nil": nil} {
		if hasREST(cs) {
			t.Errorf("a clientset %s is taken for one that speaks HTTP", name)
		}
	}
}

// TestWhoseInformer tells Tidings' informers from client-go's, by who asks for them and
// with which client.
func TestWhoseInformer(t *testing.T) {
	real, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]kubernetes.Interface{"clientset": real, "fake": fake.NewClientset()} {
		f := NewSharedInformerFactory(client, 0)
		generic, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("nodes"))
		if err != nil {
			t.Fatal(err)
		}
		for way, informer := range map[string]cache.SharedInformer{
			"the accessor": f.Core().V1().Pods().Informer(), "ForResource": generic.Informer(),
			"NewFor": NewFor[*corev1.Pod](client, "", InformerOptions{}),
		} {
			if _, ok := tidingscache.HealthOf(informer); !ok {
				t.Errorf("%s over a %s has client-go's informer", way, name)
			}
		}
		theirs := coreinformers.New(f, "a", nil).Services().Informer()
		if _, ok := tidingscache.HealthOf(theirs); ok {
			t.Errorf("the public InformerFor over a %s does not run its caller's function", name)
		}
	}
}
