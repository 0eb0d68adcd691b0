package engine

import (
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// progressAt returns a progress whose partitions, a, b and so on, have been listed at
// these versions.
func progressAt(versions ...string) *progress {
	p := &progress{}
	for i, version := range versions {
		partition := string(rune('a' + i))
		p.add(partition)
		if version != "" {
			partitions, _ := p.after(nil, true, []delta.Mark{{Partition: partition, Version: version}})
			p.reached(partitions)
		}
	}
	return p
}

func TestOldestVersionIsThatOfTheSlowestPartition(t *testing.T) {
	for want, versions := range map[string][]string{
		"9": {"9"}, "8": {"10", "8", "9"}, "": {"5", ""}, "99": {"100", "99", "101"},
	} {
		p := progressAt(versions...)
		if _, got := p.after(nil, false, nil); got != want {
			t.Errorf("the oldest of %q is %q, want %q", versions, got, want)
		}
		if complete := p.complete(); complete != (want != "") {
			t.Errorf("%q is complete: %v", versions, complete)
		}
	}
	if _, got := progressAt("", "5").after(nil, false, nil); got != "" {
		t.Errorf("a cache of which a part was never listed is at version %q", got)
	}
}

func TestP14_VersionsAreDecimalsOfAnyLength(t *testing.T) {
	long := "1" + strings.Repeat("0", 60)
	for version, reached := range map[string]bool{
		"9": true, "99999999999999999999": true, long: true,
		long[:60] + "1": false, long + "0": false, "2" + long[1:]: false, "": false, "0": false, "x": false,
	} {
		if got := progressAt(long).reflects(version); got != reached {
			t.Errorf("at %s, %q is reached: %v, want %v", long, version, got, reached)
		}
	}
	if progressAt(long, "9").reflects("10") {
		t.Error("a partition that is behind was not waited for")
	}
}

func TestRemovedPartitionIsWaitedForNoMore(t *testing.T) {
	p := progressAt("9", "")
	if p.reflects("9") || p.complete() {
		t.Error("a partition without a list was not waited for")
	}
	marks := []delta.Mark{{Partition: "a", Version: "9"}, {Partition: "b", Version: "9"}}
	if partitions, _ := p.after(nil, true, marks); partitions[1].listed { // the list is of a
		t.Error("a list of one partition counts for another")
	}
	partitions, version := p.after([]string{"b"}, false, nil)
	p.reached(partitions)
	if version != "9" || !p.reflects("9") || !p.complete() {
		t.Errorf("after the removal the version is %q", version)
	}
}

func TestPartitionThatComesBackBeforeItIsGoneIsAnother(t *testing.T) {
	p := progressAt("9", "7")
	p.add("b") // its removal stands in the queue
	partitions, version := p.after(nil, false, []delta.Mark{{Partition: "b", Version: "8"}})
	p.reached(partitions)
	if version != "" || p.complete() {
		t.Errorf("version %q: what is said of the old partition counts for the new one", version)
	}
	partitions, _ = p.after([]string{"b"}, false, nil)
	p.reached(partitions)
	if partitions, version = p.after(nil, true, []delta.Mark{{Partition: "b", Version: "11"}}); version != "9" || len(partitions) != 2 {
		t.Errorf("version %q of %v", version, partitions)
	}
}

func TestPartitionIsListedByItsList(t *testing.T) {
	p := progressAt("", "5")
	partitions, _ := p.after(nil, false, []delta.Mark{{Partition: "a", Version: "7"}}) // a bookmark
	p.reached(partitions)
	for partition, want := range map[string]bool{"a": false, "b": true, "unknown": false} {
		if got := p.listed(partition); got != want {
			t.Errorf("%s is listed: %v", partition, got)
		}
	}
}
