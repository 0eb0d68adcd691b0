package delta_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidings-go/tidings/internal/delta"
)

// replaceScope replaces a scope of its own and goes no further on an error.
func (r *rig) replaceScope(scope, version string, objects ...*object) {
	r.Helper()
	if err := r.Replace(r.Context(), scope, version, items(objects...), delta.ReplaceOptions{}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) pushScope(scope string, changes ...delta.Event[*object]) {
	r.Helper()
	if err := r.Push(r.Context(), scope, changes[len(changes)-1].Version, changes); err != nil {
		r.Fatal(err)
	}
}

// mustNot goes no further on an error.
func (r *rig) mustNot(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func TestScopeAddedLaterIsListedWithoutTheInitialMark(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Scopes: []string{"a/"}})
	r.replaceScope("a/", "5", state("a/x", 1, "X"))
	if got := r.expect("+a/x@1#X i"); !got.synced {
		t.Errorf("batch %+v", got)
	}
	r.mustNot(r.AddScope("b/"))
	r.replaceScope("b/", "7", state("b/y", 2, "Y"))
	if got := r.expect("+b/y@2#Y"); got.synced || !got.replaced || r.Version("b/") != "7" || r.Version("a/") != "5" {
		t.Errorf("batch %+v, versions %q %q", got, r.Version("a/"), r.Version("b/"))
	}
	r.pushScope("b/", set(state("b/y", 8, "Y")))
	r.expect("b/y@2#Y>b/y@8#Y")
}

// Each scope has a history of its own: what another one has listed makes nothing old.
func TestScopeAddedLaterHasAHistoryOfItsOwn(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Scopes: []string{"a/", "b/"}})
	r.mustNot(r.AddScope("c/"))
	r.mustNot(r.AddScope("d/"))
	for i, scope := range []string{"a/", "b/", "c/", "d/"} {
		r.replaceScope(scope, []string{"50", "40", "30", "20"}[i])
		r.expect()
	}
	for i, scope := range []string{"a/", "b/", "c/", "d/"} {
		listed := 50 - 10*i
		r.pushScope(scope, set(state(scope+"old", listed-1, "O")), set(state(scope+"new", listed+1, "N")))
		r.expect(fmt.Sprintf("+%snew@%d#N", scope, listed+1))
	}
}

func TestScopeAddedBeforeTheInitialSetIsPartOfIt(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Scopes: []string{"a/"}})
	r.mustNot(r.AddScope("b/"))
	r.replaceScope("a/", "5")
	if got := r.expect(); got.synced {
		t.Error("synced without the scope that was added")
	}
	r.replaceScope("b/", "7", state("b/y", 2, "Y"))
	if got := r.expect("+b/y@2#Y i"); !got.synced {
		t.Errorf("batch %+v", got)
	}
}

func TestRemovedScopeIsDeletedInOrderAndTakesNothingMore(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Scopes: []string{"a/", "b/"}})
	r.replaceScope("a/", "5", state("a/x", 1, "X"))
	r.replaceScope("b/", "5", state("b/y", 1, "Y"))
	r.expect("+a/x@1#X i")
	r.expect("+b/y@1#Y i")
	r.pushScope("b/", set(state("b/z", 6, "Z")))
	r.mustNot(r.RemoveScope("b/"))
	if err := r.Push(t.Context(), "b/", "7", []delta.Event[*object]{set(state("b/z", 7, "Z"))}); !errors.Is(err, delta.ErrUnknownScope) {
		t.Errorf("a removed scope took a change: %v", err)
	}
	r.pushScope("a/", set(state("a/x", 8, "X")))
	r.expect("+b/z@6#Z")
	if got := r.expect("-b/y@1#Y/b/y@1#Y t", "-b/z@6#Z/b/z@6#Z t"); got.removed != "b/" || got.replaced || got.synced {
		t.Errorf("batch %+v", got)
	}
	if got := r.expect("a/x@1#X>a/x@8#X"); got.removed != "" {
		t.Errorf("batch %+v", got)
	}
	if r.Version("b/") != "" || r.Len() != 0 {
		t.Errorf("version %q, %d pending", r.Version("b/"), r.Len())
	}
}

func TestRemovedScopeThatComesBackBeginsAnew(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Scopes: []string{"a/", "b/"}})
	r.replaceScope("a/", "5")
	r.replaceScope("b/", "50", state("b/y", 40, "Y"))
	r.expect()
	r.expect("+b/y@40#Y i")
	r.pushScope("b/", set(state("b/y", 60, "Y")))
	r.mustNot(r.RemoveScope("b/"))
	r.mustNot(r.AddScope("b/"))
	// Older than all that the scope has had: nothing of that counts any more.
	r.replaceScope("b/", "30", state("b/y", 20, "Y"))
	r.pushScope("b/", set(state("b/z", 31, "Z")))
	r.expect("b/y@40#Y>b/y@60#Y")
	r.expect("-b/y@60#Y/b/y@60#Y t")
	if v := r.Version("b/"); v != "" {
		t.Errorf("before its first list the scope is at version %q, which is of its life before", v)
	}
	r.expect("+b/y@20#Y")
	r.expect("+b/z@31#Z")
	if v := r.Version("b/"); v != "31" {
		t.Errorf("version %q", v)
	}
}

func TestRemovalOfTheLastUnlistedScopeCompletesTheInitialSet(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Scopes: []string{"a/", "b/"}})
	r.replaceScope("a/", "5", state("a/x", 1, "X"))
	r.mustNot(r.RemoveScope("b/"))
	if got := r.expect("+a/x@1#X i"); got.synced {
		t.Error("synced while a scope has no list")
	}
	if got := r.expect(); !got.synced || got.removed != "b/" || !r.HasSynced() {
		t.Errorf("batch %+v", got)
	}
	r.mustNot(r.AddScope("b/"))
	r.replaceScope("b/", "9", state("b/y", 1, "Y"))
	if got := r.expect("+b/y@1#Y"); got.synced {
		t.Error("synced twice")
	}
}

func TestScopesAreReplacedInOneStep(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Scopes: []string{"a/", "b/"}})
	r.replaceScope("a/", "5", state("a/x", 1, "X"))
	r.mustNot(r.ReplaceScopes(""))
	r.replaceScope("", "9", state("x", 2, "Y"))
	r.expect("+a/x@1#X i")
	if got := r.expect("-a/x@1#X/a/x@1#X t"); got.removed != "a/ b/" || got.synced || got.replaced {
		t.Errorf("batch %+v, before the new scope has a list", got)
	}
	if got := r.expect("+x@2#Y i"); !got.synced || r.Version("") != "9" || r.Version("a/") != "" {
		t.Errorf("batch %+v, versions %q and %q", got, r.Version(""), r.Version("a/"))
	}
	// Back again, when everything was synced.
	r.mustNot(r.ReplaceScopes("b/", "a/"))
	if err := r.Bookmark(t.Context(), "", "10"); !errors.Is(err, delta.ErrUnknownScope) {
		t.Errorf("the scope that was replaced took a bookmark: %v", err)
	}
	r.replaceScope("b/", "7", state("b/y", 3, "Z"))
	r.replaceScope("a/", "7")
	r.expect("-x@2#Y/x@2#Y t")
	if got := r.expect("+b/y@3#Z"); got.synced || r.Version("b/") != "7" {
		t.Errorf("batch %+v, version %q", got, r.Version("b/"))
	}
	r.expect()
}

func TestScopesThatCannotBeAddedOrRemoved(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Scopes: []string{"a/"}})
	for _, prefix := range []string{"a/", "a/b/", "a", ""} {
		if err := r.AddScope(prefix); !errors.Is(err, delta.ErrOverlap) {
			t.Errorf("AddScope(%q): %v", prefix, err)
		}
	}
	if err := r.RemoveScope("b/"); !errors.Is(err, delta.ErrUnknownScope) {
		t.Errorf("RemoveScope of an unknown scope: %v", err)
	}
	if err := newRig(t, delta.Options[*object]{}).RemoveScope(""); err == nil {
		t.Error("the scope of everything was removed")
	}
	if err := r.ReplaceScopes("b/", "", "c/"); !errors.Is(err, delta.ErrOverlap) {
		t.Errorf("ReplaceScopes with scopes that overlap: %v", err)
	}
	r.Close()
	if err := r.ReplaceScopes("c/"); !errors.Is(err, delta.ErrClosed) {
		t.Errorf("ReplaceScopes after Close: %v", err)
	}
	if err := r.AddScope("c/"); !errors.Is(err, delta.ErrClosed) {
		t.Errorf("AddScope after Close: %v", err)
	}
	if err := r.RemoveScope("a/"); !errors.Is(err, delta.ErrClosed) {
		t.Errorf("RemoveScope after Close: %v", err)
	}
}

func TestRemovalEndsAProducerThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{Scopes: []string{"a/", "b/"}, Limit: 1})
		r.pushScope("a/", set(state("a/x", 1, "X")))
		result := map[string]error{}
		var mu sync.Mutex
		for _, scope := range []string{"a/", "b/"} {
			go func() {
				err := r.Push(t.Context(), scope, "9", []delta.Event[*object]{set(state(scope+"late", 9, "L"))})
				mu.Lock()
				defer mu.Unlock()
				result[scope] = err
			}()
			synctest.Wait()
		}
		r.mustNot(r.RemoveScope("b/"))
		synctest.Wait()
		mu.Lock()
		if err, ended := result["b/"]; !errors.Is(err, delta.ErrUnknownScope) || len(result) != 1 {
			t.Errorf("ended %v: %v; the others: %v", ended, err, result)
		}
		mu.Unlock()
		r.expect("+a/x@1#X")
		r.expect()
		synctest.Wait()
		if err, ended := result["a/"]; err != nil || !ended {
			t.Errorf("the producer that waited before it: ended %v, %v", ended, err)
		}
		r.expect("+a/late@9#L")
	})
}

// TestScopesComeAndGoUnderLoad has producers push while their scopes are removed and
// added again, and compares at the end.
func TestScopesComeAndGoUnderLoad(t *testing.T) {
	const scopes, rounds = 4, 40
	r := newRig(t, delta.Options[*object]{Scopes: []string{"keep/"}, Limit: 10, FoldAbove: 5})
	r.replaceScope("keep/", "1", state("keep/x", 1, "X"))
	consumer, stop := context.WithCancel(t.Context())
	var consuming, producing sync.WaitGroup
	consuming.Go(func() {
		for {
			if err := r.Pop(consumer, r.cache.apply); err != nil {
				return
			}
		}
	})
	for n := range scopes {
		producing.Go(func() {
			scope := fmt.Sprintf("s%d/", n)
			for round := range rounds {
				if err := r.AddScope(scope); err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				var pushing sync.WaitGroup
				pushing.Go(func() {
					version := round*1000 + 1
					if r.Replace(ctx, scope, fmt.Sprint(version), items(state(scope+"x", version, "X")), delta.ReplaceOptions{}) != nil {
						return
					}
					for range 50 {
						version++
						if r.Push(ctx, scope, fmt.Sprint(version), []delta.Event[*object]{set(state(scope+"x", version, "X"))}) != nil {
							return
						}
					}
				})
				if rand.N(2) == 0 {
					pushing.Wait()
				}
				if err := r.RemoveScope(scope); err != nil {
					t.Error(err)
				}
				cancel()
				pushing.Wait()
			}
		})
	}
	producing.Wait()
	stop()
	consuming.Wait()
	for r.Pop(endsWhenIdle(t), r.cache.apply) == nil {
	}
	if len(r.cache.states) != 1 || r.Len() != 0 {
		t.Errorf("left are %v, %d pending", r.cache.states, r.Len())
	}
}
