package tidings

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings/store"
)

// TestP03_AFrozenListerReadsOneState: every read of it has the state in which it was made.
func TestP03_AFrozenListerReadsOneState(t *testing.T) {
	s, err := store.New(store.Options[*corev1.ConfigMap]{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string) {
		s.Update(func(b *store.Batch[*corev1.ConfigMap]) {
			obj := &corev1.ConfigMap{}
			obj.Namespace, obj.Name = "a", name
			b.Set("a/"+name, obj)
		})
	}
	count := func(l Lister[*corev1.ConfigMap]) (counts [5]int) {
		counts[0] = l.Len()
		for range l.All() {
			counts[1]++
		}
		for range l.Namespace("a").Select(labels.Everything()) {
			counts[2]++
		}
		for _, name := range []string{"x", "y"} {
			if _, err := l.Get("a/" + name); err == nil {
				counts[3]++
			}
			if _, err := l.Namespace("a").Get(name); err == nil {
				counts[4]++
			}
		}
		return counts
	}
	set("x")
	l := Lister[*corev1.ConfigMap]{store: s}
	frozen := l.Frozen()
	set("y")
	if got := count(frozen.Frozen()); got != [5]int{1, 1, 1, 1, 1} {
		t.Errorf("the frozen lister reads %v objects", got)
	}
	if got := count(l); got != [5]int{2, 2, 2, 2, 2} {
		t.Errorf("the lister reads %v objects", got)
	}
}
