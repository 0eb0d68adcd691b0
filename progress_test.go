package tidings

import "testing"

func TestOldestVersionIsThatOfTheSlowestScope(t *testing.T) {
	for want, versions := range map[string][]string{
		"9": {"9"}, "8": {"10", "8", "9"}, "": {"5", ""}, "99": {"100", "99", "101"},
	} {
		if got := oldestOf(versions); got != want {
			t.Errorf("the oldest of %q is %q, want %q", versions, got, want)
		}
	}
	if got := oldestOf([]string{"", "5"}); got != "" {
		t.Errorf("a cache of which a part was never listed is at version %q", got)
	}
}
