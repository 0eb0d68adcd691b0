package informers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func TestNewFilteredFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects(pod("a", "one", "web"), pod("b", "two", "web"), pod("b", "three", "db"))...)
		byApp := cache.Indexers{"app": func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Labels["app"]}, nil }}
		pods := NewFilteredFor[*corev1.Pod](client, "b", 10*time.Minute, byApp, selectWeb)
		if _, ok := pods.(coreinformers.PodIndexInformer); !ok {
			t.Error("the informer lacks the typed methods that client-go's has")
		}
		updates := 0
		if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { updates++ }}); err != nil {
			t.Fatal(err)
		}
		run(t, pods)
		checkKeys(t, pods.GetStore(), "b/two")
		if got, err := pods.GetIndexer().ByIndex("app", "web"); err != nil || len(got) != 1 {
			t.Errorf("the index has %d pods, %v; want 1", len(got), err)
		}
		advance(t, 31*time.Minute)
		if updates != 3 {
			t.Errorf("%d resyncs in 31 minutes, want one every 10", updates)
		}
	})
}

// TestNewForZeroOptions uses the typed methods of what it returns.
func TestNewForZeroOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		var nodes coreinformers.NodeIndexInformer = NewFor[*corev1.Node](client, "ignored", InformerOptions{})
		var added []string
		if _, err := nodes.AddTypedEventHandler(coreinformers.NodeHandlerFuncs{
			AddFunc: func(n *corev1.Node) { added = append(added, n.Name) },
		}); err != nil {
			t.Fatal(err)
		}
		run(t, nodes)
		if len(added) != 1 || added[0] != "n" {
			t.Errorf("the handler was told of %v, want the node", added)
		}
	})
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
			t.Errorf("the panic says %q, want the type and what to do", said)
		}
	}()
	NewFor[*widget](fake.NewClientset(), "", InformerOptions{})
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
