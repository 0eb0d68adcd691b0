package follow

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(name, uid, version string) metav1.Object {
	o := &metav1.ObjectMeta{Namespace: "a", Name: name}
	o.UID, o.ResourceVersion = types.UID(uid), version
	return o
}

// TestCheck checks that a follower detects the defects that tests of faults look for.
func TestCheck(t *testing.T) {
	one, changed, other := object("x", "1", "1"), object("x", "1", "2"), object("x", "2", "3")
	server := State{"a/x": "1@2"}
	for name, row := range map[string]struct {
		events func(f *Follower)
		cache  State
		want   []string
	}{
		"no difference": {func(f *Follower) { f.added(one); f.updated(one, changed) }, server, nil},
		"an update is missing": {func(f *Follower) { f.added(one) }, server, []string{
			`a/x of the handler is "1@1", the server's is "1@2"`,
		}},
		"the cache is late": {func(f *Follower) { f.added(changed) }, State{"a/x": "1@1"}, []string{
			`a/x of the cache is "1@1", the server's is "1@2"`,
		}},
		"a delete is missing": {func(f *Follower) {
			f.added(object("y", "9", "1"))
			f.added(changed)
		}, server, []string{
			`a/y of the handler is "9@1", the server's is ""`,
		}},
		"an add comes twice": {func(f *Follower) { f.added(changed); f.added(changed) }, server, []string{
			`a/x becomes "1@2" after "", but it was "1@2"`,
		}},
		"an update skips a state": {func(f *Follower) { f.added(other); f.updated(one, changed) }, server,
			[]string{
				`a/x becomes "1@2" after "1@1", but it was "2@3"`,
			}},
		"a delete comes twice": {func(f *Follower) {
			f.added(one)
			f.deleted("a/x")
			f.deleted("a/x")
			f.added(changed)
		}, server, []string{
			`a/x is deleted, but it was not there`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Follower{state: State{}, Cache: func() State { return row.cache }}
			row.events(f)
			if got := f.Check(server); !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
