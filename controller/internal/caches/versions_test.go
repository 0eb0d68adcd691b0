package caches

import "testing"

// TestC03_LowerVersions lists what remains of a known version when a cache follows another history.
func TestC03_LowerVersions(t *testing.T) {
	for _, test := range []struct{ known, reached, want string }{
		{"", "5", ""}, {"4", "5", "4"}, {"5", "5", "5"}, {"6", "5", "5"}, {"10", "9", "9"}, {"6", "", ""},
	} {
		if got := Older(test.known, test.reached); got != test.want {
			t.Errorf("%q, and %q is reached: %q, want %q", test.known, test.reached, got, test.want)
		}
	}
}

// TestS2_AVersionThatIsNoNumber, as of a map that was edited by hand, does not hide later ones.
func TestS2_AVersionThatIsNoNumber(t *testing.T) {
	versions := map[string]string{}
	for _, step := range [][2]string{{"x", "x"}, {"", "x"}, {"9", "9"}, {"x", "9"}, {"10", "10"}, {"9", "10"}} {
		if Raise(versions, "pods", step[0]); versions["pods"] != step[1] {
			t.Errorf("after %q the version is %q, want %q", step[0], versions["pods"], step[1])
		}
	}
}
