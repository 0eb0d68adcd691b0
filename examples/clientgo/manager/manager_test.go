package main

import (
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	all := []string{"budgets", "teams"}
	for _, test := range []struct{ wanted, want string }{
		{"*", "budgets teams"},
		{"*,-teams", "budgets"},
		{"-teams,*", "budgets"},
		{"teams,budgets", "budgets teams"},
		{"teams,-teams", ""},
		{"-teams", ""},
	} {
		got, err := choose(all, strings.Split(test.wanted, ","))
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("--controllers %s chooses %q (%v), want %q", test.wanted, got, err, test.want)
		}
	}
	for _, wrong := range []string{"", "cronjobs", "-cronjobs", "*,Teams"} {
		if got, err := choose(all, strings.Split(wrong, ",")); err == nil || !strings.Contains(err.Error(), "budgets, teams") {
			t.Errorf("--controllers %q: chooses %q, and the error does not say what there is: %v", wrong, got, err)
		}
	}
	if !slices.Equal(all, names(initializers())) {
		t.Errorf("the table has %q", names(initializers()))
	}
}
