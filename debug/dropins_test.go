package debug

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// withDropIns shows informers of all drop-in packages, with Secrets among their objects: two of a
// typed factory, one of a dynamic and one of a metadata factory, and one that has no factory and
// whose objects may be of any type.
func withDropIns(w *world, bodies bool, test func()) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // one of them sleeps by the clock of the process
	defer func() { utilruntime.ErrorHandlers = handlers }()
	config := w.server.Config()
	client, err := kubernetes.NewForConfig(config)
	w.fatal(err)
	untyped, err := dynamic.NewForConfig(config)
	w.fatal(err)
	ofMetadata, err := metadata.NewForConfig(config)
	w.fatal(err)
	configMapsResource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	typed := informers.NewSharedInformerFactory(client, 0)
	typed.Core().V1().ConfigMaps().Informer()
	typed.Core().V1().Secrets().Informer()
	dynamics := dynamicinformer.NewDynamicSharedInformerFactory(untyped, 0)
	dynamics.ForResource(configMapsResource)
	metadatas := metadatainformer.NewSharedInformerFactory(ofMetadata, 0)
	metadatas.ForResource(secretsResource)
	secrets := client.CoreV1().Secrets("")
	alone := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return secrets.List(ctx, o)
		},
		WatchFuncWithContext: secrets.Watch,
	}, nil, 0, nil)
	ctx, stop := context.WithCancel(w.Context())
	typed.StartWithContext(ctx)
	dynamics.Start(ctx.Done())
	metadatas.Start(ctx.Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		alone.RunWithContext(ctx)
	}()
	defer func() {
		stop()
		<-ended
		typed.Shutdown()
		dynamics.Shutdown()
		metadatas.Shutdown()
	}()
	w.pass(5 * time.Second)
	w.pages.Close()
	w.pages = New(Options{Bodies: bodies})
	w.fatal(w.pages.Add(typed, dynamics, metadatas, alone))
	test()
}

func TestDropInsOnPages(t *testing.T) {
	for _, bodies := range []bool{false, true} {
		inWorld(t, Options{}, func(w *world) {
			withDropIns(w, bodies, func() {
				names := []string{"*v1.ConfigMap", "*v1.Secret", "/v1, Resource=configmaps", "/v1, Resource=secrets", "<unspecified>"}
				o := getJSON[plain](w, "/")
				if len(o.Informers) != len(names) || len(o.Problems) != 0 {
					t.Fatalf("the overview is %+v, want %d informers without a problem", o, len(names))
				}
				for i, name := range names {
					if o.Informers[i].Name != name {
						t.Errorf("informer %d is %q, want %q", i, o.Informers[i].Name, name)
					}
					w.has("/"+informerLink(name), true, `href="key?key=a%2Fc0"`)
				}
				key := getJSON[KeyFigures](w, someKey)
				if len(key.Cached) != len(names) || len(key.Unknown) != 0 {
					t.Fatalf("the page of the key is %+v", key)
				}
				for i, cached := range key.Cached {
					isSecret := i == 1 || i >= 3
					if cached.Secret != isSecret || (cached.Body != "") != (bodies && !isSecret) || cached.UID == "" {
						t.Errorf("of %s: %+v", names[i], cached)
					}
				}
				w.has(someKey, false, secretText)
			})
		})
	}
}

func TestChangesOfDropIns(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		withDropIns(w, true, func() {
			for _, name := range []string{"*v1.ConfigMap", "/v1, Resource=configmaps"} {
				go func() {
					time.Sleep(time.Second)
					w.set("c1", "bad")
					w.set("c1", "first")
				}()
				f := getJSON[ChangesFigures](w, "/"+changesLink(name))
				if len(f.Changes) != 2 || f.Changes[0].Key != "a/c1" || len(f.Changes[0].Fields) == 0 ||
					f.Changes[0].Fields[0].New != `"bad"` {
					t.Errorf("changes of %s: %+v, want those of c1", name, f.Changes)
				}
			}
			go func() {
				time.Sleep(time.Second)
				w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "new"}})
				w.server.Compact()
				w.server.CutConnections()
			}()
			f := getJSON[ChangesFigures](w, "/"+changesLink("<unspecified>"))
			if len(f.Changes) != 1 || !f.Changes[0].Secret || f.Changes[0].Type != "Added" {
				t.Errorf("changes of Secrets: %+v, want the addition, without those of the list", f.Changes)
			}
		})
	})
}

func TestSourcesThatCannotBe(t *testing.T) {
	for want, of := range map[string]any{
		"the source is nil": nil, "pass GetStore()": 1, "the *debug.Handler is nil": (*Handler)(nil),
		"the *tidings.Factory is nil": (*tidings.Factory)(nil), "cannot be compared": []int{1},
	} {
		pages := New(Options{})
		if err := pages.Add(of); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want %q", of, err, want)
		}
		pages.Close()
	}
}
