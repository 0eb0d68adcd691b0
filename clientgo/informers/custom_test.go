package informers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
)

// These declarations have the form of informer-gen's output for a group with one resource,
// and of its client.

type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	return &widget{TypeMeta: w.TypeMeta, ObjectMeta: *w.ObjectMeta.DeepCopy()}
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	list := *l
	list.Items = append([]widget(nil), l.Items...)
	return &list
}

type widgetClient interface {
	Widgets(namespace string) listwatch.Client
}

type newWidgetInformerFunc func(widgetClient, time.Duration) cache.SharedIndexInformer

type widgetFactory interface {
	Start(stopCh <-chan struct{})
	InformerFor(obj runtime.Object, newFunc newWidgetInformerFunc) cache.SharedIndexInformer
	InformerName() *cache.InformerName
}

type tweakWidgets func(*metav1.ListOptions)

// widgets is the generated group.
type widgets struct {
	factory   widgetFactory
	namespace string
	tweak     tweakWidgets
}

func newWidgets(f widgetFactory, namespace string, tweak tweakWidgets) *widgets {
	return &widgets{f, namespace, tweak}
}

func (g *widgets) Informer() cache.SharedIndexInformer {
	return g.factory.InformerFor(&widget{}, func(client widgetClient, resync time.Duration) cache.SharedIndexInformer {
		source := client.Widgets(g.namespace)
		lw := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if g.tweak != nil {
					g.tweak(&o)
				}
				return source.List(ctx, o)
			},
			WatchFuncWithContext: source.Watch,
		}
		return cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &widget{}, cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: cache.Indexers{}})
	})
}

// fakeWidgets is a client that keeps its last call.
type fakeWidgets struct {
	namespace string // the namespace of the last call
	selector  string // the selector of the last list
}

func (c *fakeWidgets) Widgets(namespace string) listwatch.Client {
	c.namespace = namespace
	return listwatch.ClientOf(c)
}

func (c *fakeWidgets) IsWatchListSemanticsUnSupported() bool { return true }

func (c *fakeWidgets) List(_ context.Context, o metav1.ListOptions) (*widgetList, error) {
	c.selector = o.LabelSelector
	return &widgetList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items:    []widget{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", ResourceVersion: "1"}}},
	}, nil
}

func (c *fakeWidgets) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// TestForGroup runs a generated group on factories of this package and of client-go, with shared
// informers.
func TestForGroup(t *testing.T) {
	for name, make := range map[string]func() SharedInformerFactory{
		"tidings": func() SharedInformerFactory {
			return NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, WithTransform(mark))
		},
		"client-go": func() SharedInformerFactory {
			return clientgoinformers.NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, clientgoinformers.WithTransform(mark))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, client := make(), &fakeWidgets{}
				group, err := ForGroup(f, widgetClient(client), newWidgets, GroupOptions{Namespace: "a", TweakListOptions: selectWeb})
				if err != nil {
					t.Fatal(err)
				}
				informer := group.Informer()
				start(t, f)
				checkKeys(t, informer.GetStore(), "a/w")
				if client.namespace != "a" || client.selector != "app=web" {
					t.Errorf("the client was asked for %q in %q, want app=web in a", client.selector, client.namespace)
				}
				for _, o := range informer.GetStore().List() {
					if o.(*widget).Labels["seen"] != "yes" {
						t.Error("the factory's transform does not run")
					}
				}
				if group.Informer() != informer {
					t.Error("the informer is not shared")
				}
				if synced := f.WaitForCacheSync(soon(t).Done()); len(synced) != 1 {
					t.Errorf("the factory waits for %v, want the widgets", synced)
				}
			})
		})
	}
}

func mark(o any) (any, error) {
	o.(metav1.Object).SetLabels(map[string]string{"seen": "yes"})
	return o, nil
}

// TestForGroupFactory checks the other two methods that the generated code requires.
func TestForGroupFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name, err := cache.NewInformerName("tidings-test-group")
		if err != nil {
			t.Fatal(err)
		}
		f := NewSharedInformerFactoryWithOptions(nil, 0, WithInformerName(name))
		group, err := ForGroup(f, widgetClient(&fakeWidgets{}), newWidgets, GroupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if group.factory.InformerName() != name {
			t.Error("the group does not have the factory's informer name")
		}
		informer := group.Informer()
		group.factory.Start(runningContext(t, f).Done())
		synctest.Wait()
		if !informer.HasSynced() {
			t.Error("the group's Start does not start the factory")
		}
	})
}

// pickyFactory requires more methods than any version of informer-gen.
type pickyFactory interface {
	widgetFactory
	Juggle()
}

func newPicky(pickyFactory, string, tweakWidgets) *widgets { return nil }

func TestForGroupErrors(t *testing.T) {
	f := NewSharedInformerFactory(nil, 0)
	client := widgetClient(&fakeWidgets{})
	for name, test := range map[string]struct {
		call func() (*widgets, error)
		want string
	}{
		"factory": {func() (*widgets, error) { return ForGroup(nil, client, newWidgets, GroupOptions{}) }, "factory is nil"},
		"client":  {func() (*widgets, error) { return ForGroup(f, widgetClient(nil), newWidgets, GroupOptions{}) }, "client is nil"},
		"new": {func() (*widgets, error) {
			return ForGroup(f, client, (func(widgetFactory, string, tweakWidgets) *widgets)(nil), GroupOptions{})
		}, "newGroup is nil"},
		"some": {func() (*widgets, error) {
			return ForGroup(f, client, newWidgets, GroupOptions{Config: &rest.Config{}})
		}, "set all three"},
		"config": {func() (*widgets, error) {
			return ForGroup(f, client, newWidgets, GroupOptions{Scheme: runtime.NewScheme(), Mapper: meta.MultiRESTMapper{}, Config: &rest.Config{Host: "://"}})
		}, "GroupOptions.Config"},
		"method": {func() (*widgets, error) { return ForGroup(f, client, newPicky, GroupOptions{}) }, "pickyFactory"},
	} {
		got, err := test.call()
		if got != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %v; want an error with %q", name, got, err, test.want)
		}
	}
}

func TestForGroupPanicsForATypeThatIsNotInItsScheme(t *testing.T) {
	group, err := ForGroup(NewSharedInformerFactory(nil, 0), widgetClient(nil), newWidgets, GroupOptions{
		Scheme: runtime.NewScheme(), Mapper: meta.MultiRESTMapper{}, Config: &rest.Config{Host: "http://127.0.0.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "AddToScheme") {
			t.Errorf("panic %v, want one that names AddToScheme", v)
		}
	}()
	group.Informer()
}
