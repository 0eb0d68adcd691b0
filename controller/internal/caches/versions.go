package caches

import "github.com/tidings-go/tidings/internal/engine/delta"

// Raise sets the version of a part, if the new one is later, or the known one is no number.
func Raise(versions map[string]string, part, version string) {
	if version != "" {
		versions[part] = Newer(versions[part], version)
	}
}

// Newer returns a version if it is later than a known one, or if the known one is no number.
func Newer(known, version string) string {
	_, isNumber := delta.CompareDecimal(known, known)
	order, ok := delta.CompareDecimal(version, known)
	if version != "" && (!isNumber || ok && order > 0) {
		return version
	}
	return known
}

// Older returns the lower one of a known version, which may be "", and another one.
func Older(known, version string) string {
	if order, ok := delta.CompareDecimal(known, version); known == "" || ok && order <= 0 {
		return known
	}
	return version
}
