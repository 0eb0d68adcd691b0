package ctrlruntime_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// roundTripper counts requests.
type roundTripper struct {
	next     http.RoundTripper
	requests atomic.Int32
}

func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	r.requests.Add(1)
	return r.next.RoundTrip(req)
}

// TestHTTPClient: the HTTP client of the options sends all requests that the server receives, and
// no probes.
func TestHTTPClient(t *testing.T) {
	inWorld(t, cache.Options{}, func(w *world) {
		next, err := rest.TransportFor(w.server.Config())
		if err != nil {
			w.Fatal(err)
		}
		counted := &roundTripper{next: next}
		w.options.HTTPClient = &http.Client{Transport: counted}
		w.server.ForgetRequests()
		w.make(ctrlruntime.NewCache)
		w.start()
		w.found(&corev1.ConfigMapList{})
		w.found(&WidgetList{})
		if got, want := int(counted.requests.Load()), len(w.server.Requests()); got != want || got == 0 {
			w.Errorf("the client has sent %d requests, and the server has received %d", got, want)
		}
		if w.options.HTTPClient.Transport != counted {
			w.Error("the HTTP client of the caller has another transport")
		}
	})
}

// TestContentType: a configuration that asks for JSON is respected.
func TestContentType(t *testing.T) {
	inWorld(t, cache.Options{}, func(w *world) {
		for _, contentType := range []string{"", "application/json"} {
			w.asked = nil
			newCache := func(config *rest.Config, o cache.Options) (cache.Cache, error) {
				config = rest.CopyConfig(config)
				config.ContentType = contentType
				return ctrlruntime.NewCache(config, o)
			}
			w.make(newCache)
			w.start()
			w.want("all", w.found(&corev1.ConfigMapList{}), "attic/plain", "attic/red", "blog/plain", "blog/red", "shop/plain", "shop/red")
			inJSON := slices.ContainsFunc(w.asked, func(r string) bool {
				return strings.HasPrefix(r, "/api/v1/configmaps?") && strings.HasSuffix(r, " JSON")
			})
			if inJSON != (contentType != "") {
				w.Errorf("with the content type %q, the requests are %q", contentType, w.asked)
			}
		}
	})
}

// TestOwnInformers: an option NewInformer of the caller makes the informers. They know no List by
// labels.
func TestOwnInformers(t *testing.T) {
	var made atomic.Int32
	o := cache.Options{NewInformer: func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		made.Add(1)
		return toolscache.NewSharedIndexInformer(lw, example, resync, indexers)
	}}
	inWorld(t, o, func(w *world) {
		if n := len(w.found(&corev1.ConfigMapList{})); n != 6 || made.Load() != 1 {
			w.Errorf("%d objects of %d informers, want 6 of 1", n, made.Load())
		}
		w.want("red", w.found(&corev1.ConfigMapList{}, client.MatchingLabels{"color": "red"}), "attic/red", "blog/red", "shop/red")
		if all := ctrlruntime.Informers(w.cache).Inspect(); len(all) != 0 {
			w.Errorf("%d informers are of this module", len(all))
		}
	})
}

// TestWatchErrors: the handler of the options receives the errors of the server.
func TestWatchErrors(t *testing.T) {
	var mu sync.Mutex
	var failed []error
	handler := func(_ context.Context, _ *toolscache.Reflector, err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, err)
	}
	inWorld(t, cache.Options{DefaultWatchErrorHandler: handler}, func(w *world) {
		w.server.Inject(apisim.Match{Resource: "configmaps"}, apisim.Refuse(http.StatusForbidden, 0))
		err := w.cache.List(w.brief(), &corev1.ConfigMapList{})
		mu.Lock()
		defer mu.Unlock()
		if !apierrors.IsTimeout(err) || len(failed) == 0 || !apierrors.IsForbidden(failed[0]) {
			w.Errorf("list: %v, handler: %v", err, failed)
		}
	})
}
