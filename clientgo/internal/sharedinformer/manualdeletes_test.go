package sharedinformer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/store"
)

func TestManualDeletes(t *testing.T) {
	cache, err := store.New(store.Options[any]{})
	if err != nil {
		t.Fatal(err)
	}
	cache.Update(func(b *store.Batch[any]) { b.Set("back", 1) })
	update := func(key string) change.Change[any] {
		return change.Change[any]{Key: key, Type: change.Updated, Old: 1, New: 2}
	}
	for _, tt := range []struct {
		batch delta.Batch[any]
		want  change.Type
		left  string
	}{
		{delta.Batch[any]{Changes: []change.Change[any]{update("gone")}}, change.Added, "back"},
		{delta.Batch[any]{Changes: []change.Change[any]{update("back")}}, change.Updated, "gone"},
		{delta.Batch[any]{Changes: []change.Change[any]{update("other")}}, change.Updated, "back gone"},
		{delta.Batch[any]{Changes: []change.Change[any]{{Key: "gone", Type: change.Deleted}}},
			change.Deleted, "back"},
		{delta.Batch[any]{Changes: []change.Change[any]{update("gone"), update("back")}},
			change.Added, "nothing"},
		{delta.Batch[any]{Changes: []change.Change[any]{update("gone")}, Replaced: true},
			change.Added, "nothing"},
	} {
		var m manualDeletes
		m.add(maps.All(map[string]any{"gone": 1, "back": 1}))
		known := m.known(cache.Snapshot())
		if obj, ok := known.Get("gone"); obj != 1 || !ok {
			t.Errorf("the deleted object is known as %v, %v", obj, ok)
		}
		if _, ok := known.Get("other"); ok {
			t.Error("an object that was never cached is known")
		}
		m.settle(&tt.batch, cache.Snapshot())
		first := tt.batch.Changes[0]
		if first.Type != tt.want || (first.Old == nil) != (tt.want != change.Updated) {
			t.Errorf("the change became %+v, want %v", first, tt.want)
		}
		left := "nothing"
		if objects := m.objects.Load(); objects != nil {
			left = strings.Join(slices.Sorted(maps.Keys(*objects)), " ")
		}
		if left != tt.left {
			t.Errorf("after %+v, left are %s, want %s", tt.batch.Changes, left, tt.left)
		}
	}
}

func TestManualDeletesAreBounded(t *testing.T) {
	var m manualDeletes
	for n := range maxManualDeletes + 1 {
		m.add(maps.All(map[string]any{fmt.Sprint(n): n}))
	}
	if n := len(*m.objects.Load()); n != 1 {
		t.Errorf("%d objects are left, want the last one", n)
	}
}
