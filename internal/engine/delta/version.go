package delta

import (
	"cmp"
	"strings"
)

// CompareDecimal orders two versions that are positive decimal integers of any length: -1 if a is
// before b, 0 if they are equal, +1 if a is after b. ok is false, and the order 0, if one of them
// is something else: empty, zero, or with a leading zero, a sign, a space or any other byte that
// is not a digit. It does not allocate.
//
// Kubernetes orders the resource versions of one resource like this (KEP-5504, from v1.35 on).
func CompareDecimal(a, b string) (order int, ok bool) {
	if !positiveDecimal(a) || !positiveDecimal(b) {
		return 0, false
	}
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b)), true
	}
	return strings.Compare(a, b), true
}

// positiveDecimal reports whether s is the canonical form of an integer above zero.
func positiveDecimal(s string) bool {
	if s == "" || s[0] == '0' {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
