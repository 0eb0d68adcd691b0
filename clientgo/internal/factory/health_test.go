package factory_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/factory"
)

// TestHealth: a factory describes its informers in order, except for those of client-go.
func TestHealth(t *testing.T) {
	var f factory.Factory[string]
	add := func(key string, example runtime.Object,
		newInformer func(cache.ListerWatcher, runtime.Object) cache.SharedIndexInformer) {
		f.Informer(key, func() cache.SharedIndexInformer {
			return newInformer(&cache.ListWatch{}, example)
		})
	}
	ours := func(lw cache.ListerWatcher, example runtime.Object) cache.SharedIndexInformer {
		return tidingscache.NewSharedIndexInformer(lw, example, 0, nil)
	}
	theirs := func(lw cache.ListerWatcher, example runtime.Object) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(lw, example, 0, nil)
	}
	add("b", &corev1.Pod{}, ours)
	add("c", &corev1.Node{}, theirs)
	add("a", &corev1.ConfigMap{}, ours)
	add("b", &corev1.Secret{}, ours) // there is one
	var names []string
	for _, h := range f.Health() {
		names = append(names, h.Name)
	}
	if want := []string{"*v1.Pod", "*v1.ConfigMap"}; !slices.Equal(names, want) {
		t.Errorf("the informers are %q, want %q", names, want)
	}
}
