package listwatch

import (
	"testing"

	"github.com/tidings-go/tidings/source"
)

// pageOf is a page at a version, of objects with versions.
func pageOf(version string, objects ...string) *source.Page[any] {
	page := &source.Page[any]{Version: version}
	for _, v := range objects {
		page.Items = append(page.Items, source.Item[any]{Key: "k", Version: v})
	}
	return page
}

// TestVersionsCompare: versions are compared as numbers until they are not trusted.
func TestVersionsCompare(t *testing.T) {
	var v Versions
	if !v.Trusted() {
		t.Error("the zero value does not trust")
	}
	for _, tt := range []struct {
		a, b  string
		order int
		ok    bool
	}{
		{"9", "10", -1, true}, {"10", "10", 0, true}, {"11", "10", 1, true},
		{"", "1", 0, false}, {"x", "1", 0, false},
	} {
		if order, ok := v.Compare(tt.a, tt.b); order != tt.order || ok != tt.ok {
			t.Errorf("Compare(%q, %q) is %d, %v, want %d, %v", tt.a, tt.b, order, ok, tt.order, tt.ok)
		}
	}
	v.Distrust()
	if order, ok := v.Compare("9", "10"); order != 0 || ok || v.Trusted() {
		t.Errorf("Compare is %d, %v although the versions are not trusted", order, ok)
	}
}

// TestVersionsSee: what no server does ends the trust.
func TestVersionsSee(t *testing.T) {
	for _, tt := range []struct {
		name    string
		see     func(*Versions)
		trusted bool
	}{
		{"an object older than its list", func(v *Versions) { v.sawPage(pageOf("10", "3")) }, true},
		{"an object as old as its list", func(v *Versions) { v.sawPage(pageOf("10", "10")) }, true},
		{"an object newer than its list", func(v *Versions) { v.sawPage(pageOf("10", "11")) }, false},
		{"an object without a version", func(v *Versions) { v.sawPage(pageOf("10", "")) }, false},
		{"an object of a version that is no number", func(v *Versions) { v.sawPage(pageOf("10", "x")) }, false},
		{"two objects of different versions", func(v *Versions) { v.sawPage(pageOf("10", "3", "4")) }, true},
		{"two objects of one version", func(v *Versions) { v.sawPage(pageOf("10", "3", "3")) }, false},
		{"an object of version 0", func(v *Versions) { v.sawPage(pageOf("10", "0")) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v Versions
			tt.see(&v)
			if v.Trusted() != tt.trusted {
				t.Errorf("trusted is %v, want %v", v.Trusted(), tt.trusted)
			}
		})
	}
}
