package tidingstest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of the suite into docs/reports/reliability.md")

const (
	page  = "../docs/reports/reliability.md"
	first = "| property | test | kinds of informer | servers |\n| --- | --- | --- | --- |\n"
	// mutations is the property without a test in the suite.
	mutations = "| P17 | `TestP17_…` of package `contract`, not of the suite | typed, dynamic, metadata | `apisim` |\n"
)

// inRealTime are the tests of e2e in the place of those of the suite that would take
// minutes on a real server, by the name of the latter.
var inRealTime = map[string]string{
	"P15_SilentConnectionIsNoticed": "| P15 | `TestSilentConnections` of `e2e` | native, drop-in | real |\n",
	"P16_RewindIsNoticed":           "| P16 | `TestRestoredBackup`, `TestRestoredBackupUnnoticed` of `e2e` | native, drop-in | real |\n",
}

// rows returns the table of the suite.
func rows() string {
	var table strings.Builder
	table.WriteString(first)
	for _, test := range tests() {
		if strings.HasPrefix(test.name, "P18") && !strings.Contains(table.String(), mutations) {
			table.WriteString(mutations)
		}
		kinds := "all"
		switch {
		case test.needs&needNative != 0:
			kinds = "native"
		case test.needs&needSeveral != 0:
			kinds = "of several namespaces"
		}
		servers := "`apisim`, real"
		switch {
		case test.needs&(needBubble|needBackup) != 0:
			servers = "`apisim`"
		case test.needs&needFault != 0:
			servers += ", with what faults it has"
		case test.suits(FakeKinds()[0]):
			servers += ", fake clientset"
		}
		fmt.Fprintf(&table, "| P%d | `%s` | %s | %s |\n", numberOf(test.name), test.name, kinds,
			servers)
		table.WriteString(inRealTime[test.name])
	}
	return table.String()
}

// numberOf returns the number of the property that a test proves.
func numberOf(name string) (n int) {
	fmt.Sscanf(name, "P%02d_", &n) //nolint:errcheck // 0 is no property: the test fails
	return n
}

// TestPage compares the table in the docs with the suite. With -update it writes the table.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), first)
	if !found {
		t.Fatalf("%s has no table of the suite", page)
	}
	has, after, _ := strings.Cut(rest, "\n\n")
	want := strings.TrimSuffix(strings.TrimPrefix(rows(), first), "\n")
	if has != want && *update {
		if err := os.WriteFile(page, []byte(before+first+want+"\n\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if has != want {
		t.Errorf("the table in %s is not that of the suite. Run: go test ./tidingstest -run Page -update", page)
	}
	for n := range 20 {
		if !strings.Contains(want, fmt.Sprintf("| P%d |", n+1)) {
			t.Errorf("the table has no row for P%d", n+1)
		}
	}
}
