package terms

import (
	"maps"
	"testing"
)

// TestC03_ATermSharesItsVersions lists what a term leaves: the versions of all its controllers and those of
// the last term, unless the versions of one of them are not known.
func TestC03_ATermSharesItsVersions(t *testing.T) {
	first, second := map[string]string{"pods": "9", "secrets": "3"}, map[string]string{"pods": "10", "secrets": "2"}
	for name, test := range map[string]struct {
		left     map[string]string // nil: not known
		runs     int               // of two controllers
		versions []map[string]string
		want     map[string]string
	}{
		"both":                               {runs: 2, versions: []map[string]string{first, second}, want: map[string]string{"pods": "10", "secrets": "3"}},
		"one is not known":                   {runs: 2, versions: []map[string]string{first, nil, second}},
		"both wrote nothing":                 {runs: 2, want: map[string]string{}},
		"one did not run":                    {runs: 1, versions: []map[string]string{first}},
		"one did not run after a known term": {left: second, runs: 1, versions: []map[string]string{first}, want: map[string]string{"pods": "10", "secrets": "3"}},
		"none ran after a known term":        {left: second, want: second},
		"none ran":                           {},
	} {
		t.Run(name, func(t *testing.T) {
			term := newVersions(maps.Clone(test.left), test.left != nil, 2)
			for range test.runs {
				term.Begins()
			}
			for _, versions := range test.versions {
				term.Reached(versions)
			}
			if got := term.Left(); (got == nil) != (test.want == nil) || !maps.Equal(got, test.want) {
				t.Errorf("the term leaves %v, want %v", got, test.want)
			}
		})
	}
}
