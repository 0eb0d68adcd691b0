package incarnation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
)

func objectOf(name, uid, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: name, UID: types.UID(uid), ResourceVersion: version,
	}}
}

// TestC06_Lives: the object and the kind of the next call, by the states that the cache and the
// handler have received.
func TestC06_Lives(t *testing.T) {
	deleted := func(uid string) tidings.Event[*corev1.ConfigMap] {
		return tidings.Event[*corev1.ConfigMap]{Type: tidings.Deleted, Old: objectOf("x", uid, "2")}
	}
	replaced := func(before, after string) tidings.Event[*corev1.ConfigMap] {
		return tidings.Event[*corev1.ConfigMap]{
			Type: tidings.Updated, Old: objectOf("x", before, "2"), New: objectOf("x", after, "3"),
		}
	}
	for name, o := range map[string]struct {
		called []string // the UID of an earlier call
		events []tidings.Event[*corev1.ConfigMap]
		cached []string // the UID of the cached object
		want   Next
	}{
		"there was and is nothing":         {nil, nil, nil, Nothing},
		"the first call":                   {nil, nil, []string{"1"}, Present},
		"another call":                     {[]string{"1"}, nil, []string{"1"}, Present},
		"the handler is behind":            {[]string{"1"}, nil, nil, EndPending},
		"a replacement is yet to come":     {[]string{"1"}, nil, []string{"2"}, EndPending},
		"deleted":                          {[]string{"1"}, []tidings.Event[*corev1.ConfigMap]{deleted("1")}, nil, Ended},
		"deleted and made anew":            {[]string{"1"}, []tidings.Event[*corev1.ConfigMap]{deleted("1")}, []string{"2"}, Ended},
		"replaced":                         {[]string{"1"}, []tidings.Event[*corev1.ConfigMap]{replaced("1", "2")}, []string{"2"}, Ended},
		"replaced twice":                   {[]string{"1"}, []tidings.Event[*corev1.ConfigMap]{replaced("1", "2"), replaced("2", "3")}, []string{"3"}, Ended},
		"another one was deleted":          {[]string{"1"}, []tidings.Event[*corev1.ConfigMap]{deleted("2")}, []string{"1"}, Present},
		"it left the selection, and came":  {[]string{"1"}, []tidings.Event[*corev1.ConfigMap]{deleted("1")}, []string{"1"}, Present},
		"without UIDs, deleted":            {[]string{""}, []tidings.Event[*corev1.ConfigMap]{deleted("")}, nil, Ended},
		"without UIDs, made anew":          {[]string{""}, []tidings.Event[*corev1.ConfigMap]{deleted("")}, []string{""}, Ended},
		"a UID that is not known, there":   {[]string{"1"}, nil, []string{""}, Present},
		"a UID that is not known, deleted": {[]string{"1"}, []tidings.Event[*corev1.ConfigMap]{deleted("")}, nil, Ended},
		"a UID that is not known, changed": {[]string{"1"}, []tidings.Event[*corev1.ConfigMap]{replaced("1", "")}, []string{""}, Present},
		"without UIDs, there":              {[]string{""}, nil, []string{""}, Present},
	} {
		l := New[*corev1.ConfigMap]()
		for _, uid := range o.called {
			l.Begin("a/x", func() (*corev1.ConfigMap, bool) { return objectOf("x", uid, "1"), true })
		}
		for _, e := range o.events {
			l.Event("a/x", e)
		}
		_, got := l.Begin("a/x", func() (*corev1.ConfigMap, bool) {
			if o.cached == nil {
				return nil, false
			}
			return objectOf("x", o.cached[0], "3"), true
		})
		if got != o.want {
			t.Errorf("%s: %v, want %v", name, got, o.want)
		}
	}
}
