package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apiserver"
)

// shardWorld is objects, an informer of some slots, and one of all objects.
type shardWorld struct {
	*testing.T
	client    typedcorev1.ConfigMapInterface
	objects   map[string]*corev1.ConfigMap
	slots     *tidings.Slots
	some, all *tidings.Informer[*corev1.ConfigMap]
}

// oddOrEven returns the slots that are n modulo 2, which have the longest selector.
func oddOrEven(n int) (set tidings.SlotSet) {
	for i := n; i < 256; i += 2 {
		set.Add(i)
	}
	return set
}

// TestS7_TheServerSelectsSlots has a server select every second slot, and compares the bytes of an
// informer with those of one that has all objects. Then slots come and go.
func TestS7_TheServerSelectsSlots(t *testing.T) {
	t.Parallel()
	const objects = 200
	server := apiserver.Options{Arguments: []string{"--feature-gates=ShardedListAndWatch=true"}}.Start(t)
	config := server.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &shardWorld{
		T: t, client: client.CoreV1().ConfigMaps("default"), objects: map[string]*corev1.ConfigMap{},
		slots: tidings.NewSlots(tidings.ByUID, oddOrEven(0)),
	}
	for i := range objects {
		w.write(fmt.Sprintf("o%03d", i))
	}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if w.some, err = tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Namespace: "default", Slots: w.slots}); err != nil {
		t.Fatal(err)
	}
	if w.all, err = tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Namespace: "default"}); err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer factory.Shutdown(context.WithoutCancel(t.Context())) //nolint:errcheck // no handler can block it
	if err := factory.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if h := w.some.Health(); !h.Sharded {
		t.Fatalf("the server was not asked for the slots: %+v", h)
	}
	some, all := w.some.Health().Bytes, w.all.Health().Bytes
	w.compare("the list", some, all)
	for name := range w.objects {
		w.write(name)
	}
	w.agree()
	w.compare("the watch", w.some.Health().Bytes-some, w.all.Health().Bytes-all)

	come := tidings.SlotSet{}
	for n := 1; n < 128; n += 2 {
		come.Add(n)
	}
	for i, change := range []func() error{
		func() error { return w.slots.Add(t.Context(), come) },
		func() error { w.slots.Remove(oddOrEven(0)); return nil },
		func() error { return w.slots.Add(t.Context(), tidings.AllSlots()) },
	} {
		changed := make(chan error, 1)
		go func() { changed <- change() }()
		for name := range w.objects { // meanwhile
			w.write(name)
		}
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("o%03d", i)
		if err := w.client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		delete(w.objects, name)
		w.agree()
	}
}

// write creates or changes an object.
func (w *shardWorld) write(name string) {
	w.Helper()
	var err error
	if old := w.objects[name]; old == nil {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": "0"}}
		w.objects[name], err = w.client.Create(w.Context(), made, metav1.CreateOptions{})
	} else {
		changed := old.DeepCopy()
		changed.Data["n"] += "1"
		w.objects[name], err = w.client.Update(w.Context(), changed, metav1.UpdateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// agree waits until both informers have what the server has.
func (w *shardWorld) agree() {
	w.Helper()
	for _, i := range []*tidings.Informer[*corev1.ConfigMap]{w.some, w.all} {
		want := map[string]string{}
		for name, o := range w.objects {
			if i == w.all || w.slots.Has(string(o.UID), "default") {
				want["default/"+name] = o.ResourceVersion
			}
		}
		got := map[string]string{}
		if err := eventually(w.Context(), patience, func(context.Context) (bool, error) {
			clear(got)
			for key, o := range i.Lister().All() {
				got[key] = o.ResourceVersion
			}
			return maps.Equal(got, want), nil
		}); err != nil {
			w.Fatalf("%s has %v, want %v: %v", i.Name(), got, want, err)
		}
	}
}

// compare compares the bytes that the informers have received with the objects that they have.
func (w *shardWorld) compare(what string, some, all uint64) {
	w.Helper()
	held := 0
	for _, o := range w.objects {
		if w.slots.Has(string(o.UID), "default") {
			held++
		}
	}
	got, want := float64(some)/float64(all), float64(held)/float64(len(w.objects))
	w.Logf("%s: %d of %d bytes, with %d of %d objects", what, some, all, held, len(w.objects))
	if got < 0.8*want || got > 1.2*want {
		w.Errorf("the share of %s is %.3f of all bytes, with %.3f of the objects", what, got, want)
	}
}
