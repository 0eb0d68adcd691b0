package factory_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/source"
)

// ownClient is a client of either package with our own source.
type ownClient struct {
	get     func(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) error
	factory func() factoryOf
}

// newClients are the constructors of the clients.
var newClients = map[string]func(config *rest.Config, httpClient *http.Client) (ownClient, error){
	"dynamic": func(config *rest.Config, httpClient *http.Client) (ownClient, error) {
		client, err := dynamicinformer.NewClient(config, httpClient)
		if err != nil {
			return ownClient{}, err
		}
		return dynamicOwn(client), nil
	},
	"metadata": func(config *rest.Config, httpClient *http.Client) (ownClient, error) {
		client, err := metadatainformer.NewClient(config, httpClient)
		if err != nil {
			return ownClient{}, err
		}
		return metadataOwn(client), nil
	},
	"typed": func(config *rest.Config, httpClient *http.Client) (ownClient, error) {
		if httpClient == nil {
			client, err := kubernetes.NewForConfig(config)
			return typedOwn(client), err
		}
		client, err := kubernetes.NewForConfigAndClient(config, httpClient)
		return typedOwn(client), err
	},
}

func dynamicOwn(client *dynamicinformer.Client) ownClient {
	return ownClient{
		get: func(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) error {
			_, err := client.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			return err
		},
		factory: func() factoryOf { return dynamicinformer.NewDynamicSharedInformerFactory(client, 0) },
	}
}

func metadataOwn(client *metadatainformer.Client) ownClient {
	return ownClient{
		get: func(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) error {
			_, err := client.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			return err
		},
		factory: func() factoryOf { return metadatainformer.NewSharedInformerFactory(client, 0) },
	}
}

func typedOwn(client *kubernetes.Clientset) ownClient {
	return ownClient{
		get: func(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) error {
			_, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			return err
		},
		factory: func() factoryOf { return typedFactory{informers.NewSharedInformerFactory(client, 0)} },
	}
}

// eachClient runs a test with each client, in a bubble.
func eachClient(t *testing.T, run func(t *testing.T, newClient func(*rest.Config, *http.Client) (ownClient, error))) {
	for name, newClient := range newClients {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, newClient) })
		})
	}
}

// TestClientHasOneRateLimit has a limit of one request in ten seconds: other requests of the
// client wait after those of an informer. All have the user agent of the configuration.
func TestClientHasOneRateLimit(t *testing.T) {
	eachClient(t, func(t *testing.T, newClient func(*rest.Config, *http.Client) (ownClient, error)) {
		w, agents := newServer(t), map[string]bool{}
		w.saw = func(r *http.Request) { agents[r.UserAgent()] = true }
		w.create(t, widget("a", "one", "red"))
		config := rest.CopyConfig(w.server.Config())
		config.QPS, config.Burst, config.RateLimiter, config.UserAgent = 0.1, 1, nil, "controller/v1"
		client, err := newClient(config, nil)
		must(t, err)
		f := client.factory()
		informer := f.ForResource(widgets).Informer()
		start(t, f)
		if !informer.HasSynced() {
			t.Fatal("the first request has to wait")
		}
		began := time.Now()
		must(t, client.get(t.Context(), widgets, "a", "one"))
		if waited := time.Since(began).Round(time.Millisecond); waited != 10*time.Second {
			t.Errorf("another request waits %v, want 10s", waited)
		}
		if len(agents) != 1 || !agents[config.UserAgent] {
			t.Errorf("the user agents are %v, want %s alone", agents, config.UserAgent)
		}
	})
}

// countingTransport counts requests.
type countingTransport struct {
	next  http.RoundTripper
	count atomic.Int64
}

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	c.count.Add(1)
	return c.next.RoundTrip(r)
}

// TestClientUsesHTTPClient has a client that sends its requests with a given HTTP client,
// whatever the config has.
func TestClientUsesHTTPClient(t *testing.T) {
	eachClient(t, func(t *testing.T, newClient func(*rest.Config, *http.Client) (ownClient, error)) {
		w := newServer(t)
		w.create(t, widget("a", "one", "red"))
		transport, err := rest.TransportFor(w.server.Config())
		if err != nil {
			t.Fatal(err)
		}
		counting := &countingTransport{next: transport}
		client, err := newClient(w.server.Config(), &http.Client{Transport: counting})
		if err != nil {
			t.Fatal(err)
		}
		f := client.factory()
		informer := f.ForResource(widgets).Informer()
		start(t, f)
		if lists := counting.count.Load(); !informer.HasSynced() || lists == 0 {
			t.Errorf("synced %t, after %d requests with the HTTP client", informer.HasSynced(), lists)
		}
		before := counting.count.Load()
		if err := client.get(t.Context(), widgets, "a", "one"); err != nil || counting.count.Load() != before+1 {
			t.Errorf("Get: %v, after %d requests more with the HTTP client", err, counting.count.Load()-before)
		}
	})
}

// TestClientErrors: the error of an unusable client names the missing part.
func TestClientErrors(t *testing.T) {
	for name, newClient := range newClients {
		if name == "typed" {
			continue // client-go's own function
		}
		for want, config := range map[string]*rest.Config{
			"rest.Config is nil":         nil,
			"rest.Config cannot be used": {Host: "http://\x00"},
			"specifying a root certificates file with the insecure flag": {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{Insecure: true, CAData: []byte("a")}},
		} {
			if _, err := newClient(config, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name+"informer.NewClient") {
				t.Errorf("%s: the error is %v, want %q", name, err, want)
			}
		}
	}
	reads, err := source.NewClient(&rest.Config{Host: "http://localhost"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, read := range map[string]func() error{
		"dynamic.NewForConfig":  func() error { _, err := dynamicinformer.ReadWith((*dynamic.DynamicClient)(nil), reads); return err },
		"metadata.NewForConfig": func() error { _, err := metadatainformer.ReadWith((*metadata.Client)(nil), reads); return err },
		"dynamicinformer.ReadWith: the source.Client is nil": func() error {
			_, err := dynamicinformer.ReadWith(dynamic.New(nil), nil)
			return err
		},
		"metadatainformer.ReadWith: the source.Client is nil": func() error {
			_, err := metadatainformer.ReadWith(&metadata.Client{}, nil)
			return err
		},
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// TestReadWith has fakes for all requests except reads, and a server for reads.
func TestReadWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes, w := newFakes(t), newServer(t)
		w.create(t, widget("a", "served", "red"))
		fakes.create(t, widget("a", "fake", "red"))
		reads, err := source.NewClient(w.server.Config(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ofDynamic, err := dynamicinformer.ReadWith(fakes.dynamic, reads)
		if err != nil {
			t.Fatal(err)
		}
		ofMetadata, err := metadatainformer.ReadWith(fakes.metadata, reads)
		if err != nil {
			t.Fatal(err)
		}
		for name, client := range map[string]ownClient{"dynamic": dynamicOwn(ofDynamic), "metadata": metadataOwn(ofMetadata)} {
			f := client.factory()
			informer := f.ForResource(widgets).Informer()
			start(t, f)
			if keys := informer.GetStore().ListKeys(); len(keys) != 1 || keys[0] != "a/served" {
				t.Errorf("%s: cached are %v, want the objects of the server", name, keys)
			}
			if err := client.get(t.Context(), widgets, "a", "fake"); err != nil {
				t.Errorf("%s: %v; want the object of the fake", name, err)
			}
		}
		if !watchlist.DoesClientNotSupportWatchListSemantics(ofDynamic) || !watchlist.DoesClientNotSupportWatchListSemantics(ofMetadata) {
			t.Error("a client around a fake does not declare that it is a fake")
		}
	})
}

// failureOf returns a function that returns the first error of an informer's watch error
// handler.
func failureOf(t *testing.T, informer cache.SharedIndexInformer) func() error {
	t.Helper()
	failures := make(chan error, 1)
	must(t, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		select {
		case failures <- err:
		default:
		}
	}))
	return func() error {
		select {
		case err := <-failures:
			return err
		default:
			return nil
		}
	}
}

// TestNilClient: without a client the store can be filled and read, as tests of programs do. A
// running informer reports the error; client-go's dynamic and metadata informers end the process.
func TestNilClient(t *testing.T) {
	for _, l := range libraries[:6] {
		for name, c := range map[string]clients{
			"nil": {}, "typed nil": {typed: (*kubernetes.Clientset)(nil), dynamic: (*dynamic.DynamicClient)(nil), metadata: (*metadata.Client)(nil)},
			"nil of ours": {dynamic: (*dynamicinformer.Client)(nil), metadata: (*metadatainformer.Client)(nil)},
		} {
			t.Run(l.name+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					silenceErrors(t)
					f := l.factory(c, settings{})
					of, one := f.ForResource(widgets), runtime.Object(widget("a", "one", "red"))
					switch l.form {
					case typedForm:
						one = typedOf(widget("a", "one", "red"))
					case metadataForm:
						one = metadataOf(widget("a", "one", "red"))
					}
					must(t, of.Informer().GetStore().Add(one))
					if got, err := of.Lister().ByNamespace("a").Get("one"); err != nil || got != one {
						t.Errorf("%v, %v; want the object of the store", got, err)
					}
					if l.clientGo {
						return
					}
					failure := failureOf(t, of.Informer())
					start(t, f)
					if got := failure(); got == nil || !strings.Contains(got.Error(), "client is nil") || !strings.Contains(got.Error(), "NewForConfig") {
						t.Errorf("the watch error handler received %v", got)
					}
					if health, ok := tidingscache.HealthOf(of.Informer()); !ok || health.LastError == nil || health.Synced {
						t.Errorf("the health is %+v (%t), want the error", health, ok)
					}
				})
			})
		}
	}
}
