package cache_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// wrapped is an informer that a program has put into a struct of its own.
type wrapped struct {
	clientgo.SharedIndexInformer
	added int
}

func (w *wrapped) AddEventHandler(handler clientgo.ResourceEventHandler) (clientgo.ResourceEventHandlerRegistration, error) {
	w.added++
	return w.SharedIndexInformer.AddEventHandler(handler)
}

// registrationOf is a registration in a struct of a program.
type registrationOf struct {
	clientgo.ResourceEventHandlerRegistration
	what string
}

// TestWrapped: an informer works inside of a struct of the program's, and so does
// everything that takes informers with the struct; registrations are values that can be compared,
// used as keys, and taken out of a struct again.
func TestWrapped(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a")
		informer := &wrapped{SharedIndexInformer: newInformer(source, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{
			Indexers: clientgo.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}})}
		var one, other, typed recorder
		registrations := map[clientgo.ResourceEventHandlerRegistration]string{
			addHandler(t, informer, &one):   "one",
			addHandler(t, informer, &other): "other",
		}
		if len(registrations) != 2 || informer.added != 2 {
			t.Errorf("%d registrations of %d handlers", len(registrations), informer.added)
		}
		_, err := cache.NewTypedSharedIndexInformer[*corev1.Pod](informer).AddTypedEventHandler(
			cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{AddFunc: func(pod *corev1.Pod) { typed.OnAdd(pod, false) }})
		must(t, err)
		runSynced(t, informer)
		for registration, name := range registrations {
			if held := (registrationOf{registration, name}); name == "one" {
				must(t, cache.ShutDownEventHandler(informer, held.ResourceEventHandlerRegistration))
			}
		}
		source.Add(newPod("b"))
		one.want(t, "add default/a 1 initial")
		other.want(t, "add default/a 1 initial", "add default/b 2")
		typed.want(t, "add default/a 1", "add default/b 2")
		wantKeys(t, "ListKeys", informer.GetIndexer().ListKeys(), nil, "default/a", "default/b")
		if informer.GetController().LastSyncResourceVersion() != "2" {
			t.Error("the controller does not know the version")
		}
	})
}

// TestWrappedHealth: HealthOf finds the health of our informer in a struct that forwards
// GetStore. It finds no health of client-go's informer.
func TestWrappedHealth(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t, "a"), &corev1.Pod{}, noOptions)
		runSynced(t, informer)
		health, ok := cache.HealthOf(&wrapped{SharedIndexInformer: informer})
		if ok && (!health.Synced || health.Objects != 1) {
			t.Errorf("the health is %+v, want that of a synced informer with one object", health)
		}
		if want := t.Name() == "TestWrappedHealth/tidings"; ok != want {
			t.Errorf("HealthOf knows the informer: %v, want %v", ok, want)
		}
	})
}
