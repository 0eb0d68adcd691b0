package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "write docs/metrics-reference.md")

const referencePage = "../docs/metrics-reference.md"

// sections are the parts of the page, by the prefixes of the names in them.
var sections = []struct {
	title, text string
	prefixes    []string
}{
	{"Informers", "Each informer has these.", []string{"tidings_informer_"}},
	{"Handlers", "Each handler of an informer has these.", []string{"tidings_handler_"}},
	{"Controllers", "Each controller of package `controller` has these.",
		[]string{"tidings_controller_"}},
	{"Guards", "Each guard of a manager, and each that is added, has these. The label is the address of the server.",
		[]string{"tidings_guard_"}},
	{"Elections", "Each candidate for a Lease has these.", []string{"tidings_election_"}},
	{"Groups of shards", "Each `shard.Group` that is added has these, until it was left. The label is " +
		"the name of the group.", []string{"tidings_shard_"}},
	{"Names of controller-runtime", "With `Options.ControllerRuntime`, controllers and elections " +
		"have these as well. The labels `name` and `controller` of a `workqueue_…` are both the " +
		"name of the controller.",
		[]string{"controller_runtime_", "workqueue_", "leader_election_"}},
	{"Names of client-go", "With `Options.ClientGo`, drop-in informers with a `cache.InformerName` " +
		"have these as well.", []string{"informer_"}},
}

// reference returns the page.
func reference(families []*dto.MetricFamily) string {
	var page strings.Builder
	page.WriteString("# Reference of the metrics\n\nGenerated from the collector by " +
		"`go test ./metrics -run Reference -update`. [Operate](operate.md#metrics) says how to use them.\n" +
		"A native histogram has no buckets in the text format; the others end at powers of 4, " +
		"from 61 µs to 64 s.\n")
	for _, s := range sections {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| metric | type | labels | |\n| --- | --- | --- | --- |\n",
			s.title, s.text)
		for _, f := range families {
			for _, prefix := range s.prefixes {
				if strings.HasPrefix(f.GetName(), prefix) {
					fmt.Fprintf(&page, "| `%s` | %s | `%s` | %s |\n", f.GetName(), typeOf(f),
						strings.Join(labelsOf(f), "`, `"), f.GetHelp())
				}
			}
		}
	}
	return page.String()
}

func typeOf(f *dto.MetricFamily) string {
	if h := f.GetMetric()[0].GetHistogram(); h != nil && len(h.Bucket) == 0 {
		return "native histogram"
	}
	return strings.ToLower(f.GetType().String())
}

// TestReference compares the page with the collector. With -update it writes the page.
func TestReference(t *testing.T) {
	c := collector(t, all, everything()...)
	families := gathered(t, c)
	if len(families) != len(c.families) {
		t.Errorf("%d metrics have a value, and %d are described", len(families), len(c.families))
	}
	want := reference(families)
	if got := strings.Count(want, "\n| `"); got != len(families) {
		t.Errorf("%d metrics are in a section, of %d", got, len(families))
	}
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(referencePage)
	if err != nil || string(page) != want {
		t.Errorf("%s is not that of the collector (%v). Run: go test ./metrics -run Reference -update",
			referencePage, err)
	}
}
