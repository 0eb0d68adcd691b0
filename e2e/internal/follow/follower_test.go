package follow

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(name, uid, version string) metav1.Object {
	return &metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(uid), ResourceVersion: version}
}

// TestCheck shows that a follower sees what a test of faults is there to find.
func TestCheck(t *testing.T) {
	one, changed, other := object("x", "1", "1"), object("x", "1", "2"), object("x", "2", "3")
	truth := State{"a/x": "1@2"}
	for name, row := range map[string]struct {
		tell  func(f *fold)
		cache State
		want  []string
	}{
		"all is well": {func(f *fold) { f.added(one); f.updated(one, changed) }, truth, nil},
		"an update is missed": {func(f *fold) { f.added(one) }, truth, []string{
			`the handler has "1@1" of a/x, which is 1@2`,
		}},
		"the cache is late": {func(f *fold) { f.added(changed) }, State{"a/x": "1@1"}, []string{
			`the cache has "1@1" of a/x, which is 1@2`,
		}},
		"a delete is missed": {func(f *fold) { f.added(object("y", "9", "1")); f.added(changed) }, truth, []string{
			`the handler has 9@1 of a/y, which is gone`,
		}},
		"an add comes twice": {func(f *fold) { f.added(changed); f.added(changed) }, truth, []string{
			`add of a/x 1@2, which is there as 1@2`,
		}},
		"an update leaps": {func(f *fold) { f.added(other); f.updated(one, changed) }, truth, []string{
			`update of a/x from 1@1, which is there as "2@3"`,
		}},
		"a delete comes twice": {func(f *fold) { f.added(one); f.deleted("a/x"); f.deleted("a/x"); f.added(changed) }, truth, []string{
			`delete of a/x, which is not there`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Follower{fold: &fold{state: State{}}, Cache: func() State { return row.cache }}
			row.tell(f.fold)
			if got := f.Check(truth); !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
