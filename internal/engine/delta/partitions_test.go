package delta_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

func TestPartitionAddedLaterIsListedWithoutTheInitialMark(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"a/"}})
	r.listOf("a/", "5", state("a/x", 1, "X"))
	if got := r.expect("+a/x@1#X i"); !got.synced {
		t.Errorf("batch %+v", got)
	}
	r.must(r.AddPartition("b/"))
	r.listOf("b/", "7", state("b/y", 2, "Y"))
	if got := r.expect("+b/y@2#Y"); got.synced || !got.replaced || r.reached["b/"] != "7" || r.reached["a/"] != "5" {
		t.Errorf("batch %+v, versions %q %q", got, r.reached["a/"], r.reached["b/"])
	}
	r.pushTo("b/", set(state("b/y", 8, "Y")))
	r.expect("b/y@2#Y>b/y@8#Y")
}

// Each partition has a history of its own: the list of another one makes nothing old.
func TestPartitionAddedLaterHasAHistoryOfItsOwn(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"a/", "b/"}})
	r.must(r.AddPartition("c/"))
	r.must(r.AddPartition("d/"))
	for i, partition := range []string{"a/", "b/", "c/", "d/"} {
		r.listOf(partition, []string{"50", "40", "30", "20"}[i])
		r.expect()
	}
	for i, partition := range []string{"a/", "b/", "c/", "d/"} {
		listed := 50 - 10*i
		r.pushTo(partition, set(state(partition+"old", listed-1, "O")), set(state(partition+"new", listed+1, "N")))
		r.expect(fmt.Sprintf("+%snew@%d#N", partition, listed+1))
	}
}

func TestPartitionAddedBeforeTheInitialSetIsPartOfIt(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"a/"}})
	r.must(r.AddPartition("b/"))
	r.listOf("a/", "5")
	if got := r.expect(); got.synced {
		t.Error("synced without the partition that was added")
	}
	r.listOf("b/", "7", state("b/y", 2, "Y"))
	if got := r.expect("+b/y@2#Y i"); !got.synced {
		t.Errorf("batch %+v", got)
	}
}

func TestRemovedPartitionIsDeletedInOrderAndTakesNothingMore(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"a/", "b/"}})
	r.listOf("a/", "5", state("a/x", 1, "X"))
	r.listOf("b/", "5", state("b/y", 1, "Y"))
	r.expect("+a/x@1#X i")
	r.expect("+b/y@1#Y i")
	r.pushTo("b/", set(state("b/z", 6, "Z")))
	r.must(r.RemovePartition("b/"))
	if err := r.Push(t.Context(), "b/", "7", []delta.Event[*object]{set(state("b/z", 7, "Z"))}); !errors.Is(err, delta.ErrUnknownPartition) {
		t.Errorf("a removed partition took a change: %v", err)
	}
	r.pushTo("a/", set(state("a/x", 8, "X")))
	r.expect("+b/z@6#Z")
	if got := r.expect("-b/y@1#Y/b/y@1#Y t", "-b/z@6#Z/b/z@6#Z t"); got.removed != "b/" || got.replaced || got.synced {
		t.Errorf("batch %+v", got)
	}
	if got := r.expect("a/x@1#X>a/x@8#X"); got.removed != "" {
		t.Errorf("batch %+v", got)
	}
	if r.reached["b/"] != "" || r.Len() != 0 {
		t.Errorf("version %q, %d pending", r.reached["b/"], r.Len())
	}
}

func TestRemovedPartitionThatComesBackBeginsAnew(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"a/", "b/"}})
	r.listOf("a/", "5")
	r.listOf("b/", "50", state("b/y", 40, "Y"))
	r.expect()
	r.expect("+b/y@40#Y i")
	r.pushTo("b/", set(state("b/y", 60, "Y")))
	r.must(r.RemovePartition("b/"))
	r.must(r.AddPartition("b/"))
	// Older than all that the partition has had: nothing of that counts any more.
	r.listOf("b/", "30", state("b/y", 20, "Y"))
	r.pushTo("b/", set(state("b/z", 31, "Z")))
	r.expect("b/y@40#Y>b/y@60#Y")
	r.expect("-b/y@60#Y/b/y@60#Y t")
	if v := r.reached["b/"]; v != "" {
		t.Errorf("before its first list the partition is at version %q, which is of its life before", v)
	}
	r.expect("+b/y@20#Y")
	r.expect("+b/z@31#Z")
	if v := r.reached["b/"]; v != "31" {
		t.Errorf("version %q", v)
	}
}

func TestRemovalOfTheLastUnlistedPartitionCompletesTheInitialSet(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"a/", "b/"}})
	r.listOf("a/", "5", state("a/x", 1, "X"))
	r.must(r.RemovePartition("b/"))
	if got := r.expect("+a/x@1#X i"); got.synced {
		t.Error("synced while a partition has no list")
	}
	if got := r.expect(); !got.synced || got.removed != "b/" || !r.synced {
		t.Errorf("batch %+v", got)
	}
	r.must(r.AddPartition("b/"))
	r.listOf("b/", "9", state("b/y", 1, "Y"))
	if got := r.expect("+b/y@1#Y"); got.synced {
		t.Error("synced twice")
	}
}

func TestPartitionsAreReplacedInOneStep(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"a/", "b/"}})
	r.listOf("a/", "5", state("a/x", 1, "X"))
	r.must(r.ReplacePartitions(""))
	r.listOf("", "9", state("x", 2, "Y"))
	r.expect("+a/x@1#X i")
	if got := r.expect("-a/x@1#X/a/x@1#X t"); got.removed != "a/ b/" || got.synced || got.replaced {
		t.Errorf("batch %+v, before the new partition has a list", got)
	}
	if got := r.expect("+x@2#Y i"); !got.synced || r.reached[""] != "9" || r.reached["a/"] != "" {
		t.Errorf("batch %+v, versions %q and %q", got, r.reached[""], r.reached["a/"])
	}
	// Back again, when everything was synced.
	r.must(r.ReplacePartitions("b/", "a/"))
	if err := r.Bookmark(t.Context(), "", "10"); !errors.Is(err, delta.ErrUnknownPartition) {
		t.Errorf("the partition that was replaced took a bookmark: %v", err)
	}
	r.listOf("b/", "7", state("b/y", 3, "Z"))
	r.listOf("a/", "7")
	r.expect("-x@2#Y/x@2#Y t")
	if got := r.expect("+b/y@3#Z"); got.synced || r.reached["b/"] != "7" {
		t.Errorf("batch %+v, version %q", got, r.reached["b/"])
	}
	r.expect()
}

func TestPartitionsThatCannotBeAddedOrRemoved(t *testing.T) {
	r := newRig(t, delta.Options[*object]{Partitions: []string{"a/"}})
	for _, prefix := range []string{"a/", "a/b/", "a", ""} {
		if err := r.AddPartition(prefix); !errors.Is(err, delta.ErrOverlap) {
			t.Errorf("AddPartition(%q): %v", prefix, err)
		}
	}
	if err := r.RemovePartition("b/"); !errors.Is(err, delta.ErrUnknownPartition) {
		t.Errorf("RemovePartition of an unknown partition: %v", err)
	}
	if err := newRig(t, delta.Options[*object]{}).RemovePartition(""); err == nil {
		t.Error("the partition of everything was removed")
	}
	if err := r.ReplacePartitions("b/", "", "c/"); !errors.Is(err, delta.ErrOverlap) {
		t.Errorf("ReplacePartitions with partitions that overlap: %v", err)
	}
	r.Close()
	if err := r.ReplacePartitions("c/"); !errors.Is(err, delta.ErrClosed) {
		t.Errorf("ReplacePartitions after Close: %v", err)
	}
	if err := r.AddPartition("c/"); !errors.Is(err, delta.ErrClosed) {
		t.Errorf("AddPartition after Close: %v", err)
	}
	if err := r.RemovePartition("a/"); !errors.Is(err, delta.ErrClosed) {
		t.Errorf("RemovePartition after Close: %v", err)
	}
}

func TestRemovalEndsAProducerThatWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{Partitions: []string{"a/", "b/"}, Limit: 1})
		r.pushTo("a/", set(state("a/x", 1, "X")))
		result := map[string]error{}
		var mu sync.Mutex
		for _, partition := range []string{"a/", "b/"} {
			go func() {
				err := r.Push(t.Context(), partition, "9", []delta.Event[*object]{set(state(partition+"late", 9, "L"))})
				mu.Lock()
				defer mu.Unlock()
				result[partition] = err
			}()
			synctest.Wait()
		}
		r.must(r.RemovePartition("b/"))
		synctest.Wait()
		mu.Lock()
		if err, ended := result["b/"]; !errors.Is(err, delta.ErrUnknownPartition) || len(result) != 1 {
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
