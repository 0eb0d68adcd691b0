package written

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller/guard"
)

// withObject returns a guard for a server with the object shop/x.
func withObject(t *testing.T) (*guard.Guard, *corev1.ConfigMap) {
	t.Helper()
	server := apisim.Start(t)
	if _, err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	made, err := server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	asker, err := guard.New(server.Config(), guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return asker, made.(*corev1.ConfigMap)
}

// TestAnswersOfAnotherHistory asks about writes a server that was set back: what cannot be true in
// the history of the cache is told to it, and nothing else.
func TestAnswersOfAnotherHistory(t *testing.T) {
	asker, x := withObject(t)
	version, uid, later := x.ResourceVersion, string(x.UID), x.ResourceVersion+"0"
	holds := fakeCache{reached: version, version: version, uid: uid}
	update := Write{Object: "shop/x", UID: uid, Version: version}
	unknown := Write{Object: "shop/x", Unknown: true}
	for name, test := range map[string]struct {
		write Write
		cache fakeCache
		want  string
	}{
		"the cached state":                       {write: unknown, cache: holds},
		"a later one":                            {write: unknown, cache: fakeCache{reached: "1", version: "1", uid: uid}},
		"an earlier one":                         {unknown, fakeCache{reached: later, version: later, uid: uid}, "shop/x " + later + " " + uid},
		"one that was passed":                    {unknown, fakeCache{reached: later, version: "1", uid: uid}, "shop/x " + later + " " + uid},
		"one that was passed, and may be hidden": {write: unknown, cache: fakeCache{reached: later, version: "1", uid: uid, selects: true}},
		"another object at its version":          {unknown, fakeCache{reached: version, version: version, uid: "2"}, "shop/x " + version + " 2"},
		"a UID that is not known":                {write: unknown, cache: fakeCache{reached: version, version: version}},
		"the written state":                      {write: update, cache: fakeCache{reached: "1"}},
		"one before the written state":           {Write{Object: "shop/x", UID: uid, Version: later}, fakeCache{reached: "1"}, "shop/x " + later + " " + uid},
		"one before that of a conflict":          {write: Write{Object: "shop/x", UID: uid, Version: later, Conflict: true}, cache: fakeCache{reached: "1"}},
		"no object":                              {write: Write{Object: "shop/y", UID: "3", Gone: true}, cache: fakeCache{reached: "1"}},
		"no object, and an earlier version": {Write{Object: "shop/y", UID: "3", Gone: true}, fakeCache{reached: later},
			"shop/y " + later + " "},
		"a collection":             {write: Write{Object: "shop/"}, cache: holds},
		"a collection before that": {Write{Object: "shop/"}, fakeCache{reached: later, version: version, uid: uid}, "shop/ " + later + " "},
	} {
		t.Run(name, func(t *testing.T) {
			var doubts []string
			test.cache.doubts = &doubts
			if _, err := test.write.Ask(t.Context(), asker, test.cache, corev1.SchemeGroupVersion.WithResource("configmaps"), 0); err != nil {
				t.Fatal(err)
			}
			slices.Sort(doubts)
			if got := strings.Join(doubts, " "); got != test.want {
				t.Errorf("the cache was told %q, want %q", got, test.want)
			}
		})
	}
}

// TestAnotherObjectInItsPlace: the cache shows what the server has, which is another object than
// the written one, at an earlier version.
func TestAnotherObjectInItsPlace(t *testing.T) {
	asker, x := withObject(t)
	w := Write{Object: "shop/x", UID: "2", Version: x.ResourceVersion + "0"}
	holds := fakeCache{reached: x.ResourceVersion, version: x.ResourceVersion, uid: string(x.UID)}
	a, err := w.Ask(t.Context(), asker, holds, corev1.SchemeGroupVersion.WithResource("configmaps"), 0)
	if err != nil || !a.Settled {
		t.Errorf("the write is settled: %v, %v", a.Settled, err)
	}
}

// TestC03_AnotherObjectBehindATransform: others have made another object of the name of a deleted
// one. A transform has left out what tells them apart.
func TestC03_AnotherObjectBehindATransform(t *testing.T) {
	asker, x := withObject(t)
	version := x.ResourceVersion
	deleted := Write{Object: "shop/x", UID: "2", Gone: true}
	for name, test := range map[string]struct {
		write Write
		cache fakeCache
		want  bool
	}{
		"without UID, the deleted one": {deleted, fakeCache{reached: "1", version: "1"}, false},
		"without UID, the other one":   {deleted, fakeCache{reached: version, version: version}, true},
		"without both, before":         {deleted, fakeCache{reached: "1", bare: true}, false},
		"without both, passed":         {deleted, fakeCache{reached: version, bare: true}, true},
	} {
		var doubts []string
		test.cache.doubts = &doubts
		a, err := test.write.Ask(t.Context(), asker, test.cache, corev1.SchemeGroupVersion.WithResource("configmaps"), askAfter)
		if err != nil || a.Settled != test.want || (len(doubts) > 0) == test.want {
			t.Errorf("%s: settled %v, doubts %q, %v", name, a.Settled, doubts, err)
		}
	}
}

// TestC03_QuietWrites are those that no event may tell a cache of. That the cache has what the
// server has settles none of them: its watch may have yet to bring what came and went. The cache is
// listed again.
func TestC03_QuietWrites(t *testing.T) {
	asker, x := withObject(t)
	version, later, uid := x.ResourceVersion, x.ResourceVersion+"0", string(x.UID)
	for name, test := range map[string]struct {
		write             Write
		cache             fakeCache
		settled, isListed bool
	}{
		"a collection":                  {Write{Object: "shop/", Version: version}, fakeCache{reached: "1", version: version, uid: uid}, false, true},
		"one that the server lost":      {Write{Object: "shop/", Version: later}, fakeCache{reached: "1", version: version, uid: uid}, true, false},
		"a hidden end":                  {Write{Object: "shop/y", UID: "2", Gone: true, Version: version}, fakeCache{reached: "1", selects: true}, false, true},
		"an end that the server lost":   {Write{Object: "shop/y", UID: "2", Gone: true, Version: later}, fakeCache{reached: "1", selects: true}, true, false},
		"an end that shows":             {Write{Object: "shop/y", UID: "2", Gone: true, Version: version}, fakeCache{reached: "1"}, false, true},
		"a state of an ended object":    {Write{Object: "shop/y", UID: "2", Version: version}, fakeCache{reached: "1"}, false, true},
		"one without a version":         {Write{Object: "shop/y", UID: "2"}, fakeCache{reached: "1"}, true, false},
		"a state that shows":            {Write{Object: "shop/x", UID: uid, Version: version}, fakeCache{reached: "1"}, false, false},
		"a hidden state, now selected":  {Write{Object: "shop/x", UID: uid, Version: version}, fakeCache{reached: "1", selects: true}, false, false},
		"a deletion that others follow": {Write{Object: "shop/x", UID: "2", Gone: true, Version: "1"}, fakeCache{}, false, false},
	} {
		listed := false
		test.cache.listed = &listed
		a, err := test.write.Ask(t.Context(), asker, test.cache, corev1.SchemeGroupVersion.WithResource("configmaps"), 0)
		if err != nil || a.Settled != test.settled || listed != test.isListed || a.Listing != listed {
			t.Errorf("%s: settled %v, listed %v, %v", name, a.Settled, listed, err)
		}
	}
}
