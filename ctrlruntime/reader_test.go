package ctrlruntime

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/tidings-go/tidings/source"
)

func TestResourceOf(t *testing.T) {
	core := source.Resource{Version: "v1", Name: "pods"}
	apps := source.Resource{Group: "apps", Version: "v1", Name: "deployments"}
	namespaced := func(r source.Resource) source.Resource {
		r.Scope = source.ScopeNamespaced
		return r
	}
	for path, want := range map[string]struct {
		resource  source.Resource
		namespace string
	}{
		"/api/v1/pods":                               {core, ""},
		"/api/v1/namespaces/shop/pods":               {namespaced(core), "shop"},
		"/api/v1/namespaces":                         {source.Resource{Version: "v1", Name: "namespaces"}, ""},
		"/apis/apps/v1/deployments":                  {apps, ""},
		"/apis/apps/v1/namespaces/shop/deployments/": {namespaced(apps), "shop"},
	} {
		resource, namespace, ok := resourceOf(path)
		if !ok || resource != want.resource || namespace != want.namespace {
			t.Errorf("%s: %+v in %q, %v, want %+v", path, resource, namespace, ok, want)
		}
	}
	for _, path := range []string{"", "/", "/api", "/api/v1", "/apis/apps/v1", "/version", "/metrics/v1/pods",
		"/api/v1/namespaces/shop/pods/web", "/api/v1/pods/web", "/apis/apps/v1/namespaces/shop/deployments/web/status"} {
		if resource, _, ok := resourceOf(path); ok {
			t.Errorf("%s is the collection %+v", path, resource)
		}
	}
}

// asking is a ListerWatcher that sends a GET of an address.
func asking(client *http.Client, list, watched string) cache.ListerWatcher {
	get := func(ctx context.Context, url string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		_, err = client.Do(req) //nolint:bodyclose // it has no body
		return err
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			return nil, get(ctx, list)
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), get(ctx, watched)
		},
	}
}

// TestReadable: requests that are not those of one resource leave the ListerWatcher as it is.
func TestReadable(t *testing.T) {
	client := probed(&http.Client{})
	r := newReader(&rest.Config{Host: "http://localhost/prefix"}, client, &InformerSet{scheme: scheme.Scheme})
	const pods = "http://localhost/prefix/api/v1/pods"
	for name, c := range map[string]struct {
		list, watch string
		example     runtime.Object
		known       bool
	}{
		"pods":             {pods + "?labelSelector=a%3Db", pods + "?watch=true", &corev1.Pod{}, true},
		"other paths":      {pods, pods + "/log", &corev1.Pod{}, false},
		"another query":    {pods + "?shard=1", pods, &corev1.Pod{}, false},
		"another prefix":   {"http://localhost/api/v1/pods", "http://localhost/api/v1/pods", &corev1.Pod{}, false},
		"no resource":      {"http://localhost/prefix/version", "http://localhost/prefix/version", &corev1.Pod{}, false},
		"another version":  {pods + "?", pods, &metav1.PartialObjectMetadata{}, false},
		"a timeout":        {pods + "?labelSelector=a%3Db&timeout=10s", pods + "?watch=true&timeout=10s", &corev1.Pod{}, true},
		"a bad selector":   {pods + "?labelSelector=%21%21", pods, &corev1.Pod{}, false},
		"no object":        {pods, pods, &corev1.PodList{}, false},
		"no request":       {"://", "://", &corev1.Pod{}, false},
		"not of a version": {"http://localhost/prefix/apis/apps/v1/pods", "http://localhost/prefix/apis/apps/v1/pods", &corev1.Pod{}, false},
	} {
		lw, key := r.readable(asking(client, c.list, c.watch), c.example)
		l, known := lw.(*listWatch)
		if known != c.known {
			t.Errorf("%s: the source is known: %v, want %v", name, known, c.known)
		}
		if known == (key.fallback != "") {
			t.Errorf("%s: the key has the reason %q", name, key.fallback)
		}
		if collection := strings.HasPrefix(c.list, pods) && c.watch != pods+"/log"; collection && key.resource != "pods" {
			t.Errorf("%s: the reads do not find the informer: %+v", name, key)
		}
		if known && (l.options.Labels != "a=b" || l.options.Tweak == nil || key.name != "pods.v1 [labels a=b]") {
			t.Errorf("%s: labels %q, name %q", name, l.options.Labels, key.name)
		}
	}
}

// TestNewestKeepsWhatIsDeclared: a ListerWatcher that cannot stream lists is not made one that can.
func TestNewestKeepsWhatIsDeclared(t *testing.T) {
	r := newReader(&rest.Config{}, http.DefaultClient, &InformerSet{})
	for _, streams := range []bool{true, false} {
		lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{}, declaring(!streams))
		if got := !watchlist.DoesClientNotSupportWatchListSemantics(r.newest(lw)); got != streams {
			t.Errorf("it streams lists: %t, want %t", got, streams)
		}
	}
}

// declaring is a client that declares whether it cannot stream lists.
type declaring bool

func (d declaring) IsWatchListSemanticsUnSupported() bool { return bool(d) }

// TestUnlimited: without a rate limit of the program, a probe has a place of its own in the burst.
func TestUnlimited(t *testing.T) {
	for burst, want := range map[int]int{0: rest.DefaultBurst + 1, 7: 8, -1: -1} {
		if got := unlimited(&rest.Config{Burst: burst}).Burst; got != want {
			t.Errorf("a burst of %d became %d, want %d", burst, got, want)
		}
	}
}
