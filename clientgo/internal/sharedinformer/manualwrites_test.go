package sharedinformer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/store"
)

// TestManualWrites settles changes that the queue has computed with what the program had written:
// gone is not in the cache any more, back is there again, and mine was put there.
func TestManualWrites(t *testing.T) {
	cache, err := store.New(store.Options[any]{})
	if err != nil {
		t.Fatal(err)
	}
	cache.Update(func(b *store.Batch[any]) {
		for _, key := range []string{"back", "mine", "other"} {
			b.Set(key, key)
		}
	})
	for _, tt := range []struct {
		name    string
		changes []change.Change[any]
		list    bool
		want    string
		left    string
	}{
		{name: "an update of a deleted object", changes: []change.Change[any]{{Key: "gone", Type: change.Updated, Old: manual{"gone", true}, New: 2}},
			want: "Added gone <nil> 2", left: "back mine"},
		{name: "an update of a written object", changes: []change.Change[any]{{Key: "mine", Type: change.Updated, Old: manual{object: "mine"}, New: 2}},
			want: "Updated mine mine 2", left: "back gone"},
		{name: "an add, computed before the write", changes: []change.Change[any]{{Key: "mine", Type: change.Added, New: 2}},
			want: "Updated mine mine 2", left: "back gone"},
		{name: "no change, computed before the write", changes: []change.Change[any]{{Key: "mine", Type: change.Updated, Old: 1, New: 1, Unchanged: true}},
			want: "Updated mine mine 1", left: "back gone"},
		{name: "two updates", changes: []change.Change[any]{{Key: "back", Type: change.Updated, Old: manual{object: 1}, New: 2}, {Key: "back", Type: change.Updated, Old: 2, New: 3}},
			want: "Updated back back 2, Updated back 2 3", left: "gone mine"},
		{name: "others", changes: []change.Change[any]{{Key: "other", Type: change.Updated, Old: 1, New: 2}},
			want: "Updated other 1 2", left: "back gone mine"},
		{name: "a delete of a deleted object", changes: []change.Change[any]{{Key: "gone", Type: change.Deleted, Old: manual{"gone", true}, New: 2}},
			want: "Deleted gone gone 2", left: "back mine"},
		{name: "a tombstone", changes: []change.Change[any]{{Key: "mine", Type: change.Deleted, Old: manual{object: 1}, New: manual{object: 1}, Tombstone: true}},
			want: "Deleted mine mine mine", left: "back gone"},
		{name: "a list", list: true, changes: []change.Change[any]{{Key: "back", Type: change.Updated, Old: 1, New: 2}},
			want: "Updated back back 2", left: "mine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m manualWrites
			m.remove("gone", "gone")
			m.remove("back", "back")
			m.set("back")
			m.set("mine")
			known := m.known(cache.Snapshot())
			for key, want := range map[string]any{"gone": manual{"gone", true}, "back": manual{object: "back"}, "mine": manual{object: "mine"}, "other": "other", "none": nil} {
				if obj, ok := known.Get(key); obj != want || ok != (want != nil) {
					t.Errorf("%s is known as %v, %v", key, obj, ok)
				}
			}
			if got := maps.Collect(known.Prefix("")); len(got) != 3 || got["other"] != "other" || got["mine"] != any(manual{object: "mine"}) {
				t.Errorf("known are %v", got)
			}
			for key := range known.Prefix("") {
				if key != "back" {
					t.Errorf("the first key is %s", key)
				}
				break
			}
			m.settle(&delta.Batch[any]{Changes: tt.changes, Replaced: tt.list}, cache.Snapshot())
			var got []string
			for _, d := range tt.changes {
				got = append(got, fmt.Sprint(d.Type, " ", d.Key, " ", d.Old, " ", d.New))
			}
			if text := strings.Join(got, ", "); text != tt.want {
				t.Errorf("the changes became %s, want %s", text, tt.want)
			}
			if left := strings.Join(slices.Sorted(maps.Keys(m.keys)), " "); left != tt.left {
				t.Errorf("left are %q, want %q", left, tt.left)
			}
		})
	}
}

func TestManualDeletesAreBounded(t *testing.T) {
	var m manualWrites
	m.set("mine")
	for n := range maxManualDeletes + 1 {
		m.remove(fmt.Sprint(n), n)
	}
	if n := len(m.keys); n != 2 || m.deletes != 1 {
		t.Errorf("%d keys are left with %d deletes, want the written one and the last delete", n, m.deletes)
	}
}
