package lease

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func leaseAt(name, version string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

// TestViewOrdersObservations takes observations of the Leases a and b, each with its version, and
// lists those that are put. "late" ones were sent before the first step, "new" ones after the step
// before; a name in a list has its version, as in "list 9 a7 b8".
func TestViewOrdersObservations(t *testing.T) {
	for name, test := range map[string]struct{ steps, want string }{
		"events":                           {"event a5, event a6", "a5 a6"},
		"an event twice":                   {"event a5, event a5", "a5"},
		"an old event":                     {"event a5, event a4", "a5"},
		"a Lease's versions are its own":   {"event a5, event b4", "a5 b4"},
		"a delete":                         {"event a5, delete a6", "a5 a6-deleted"},
		"an event from before the delete":  {"delete a6, event a5", "a6-deleted"},
		"a read":                           {"event a5, new a6", "a5 a6"},
		"a read of the same state":         {"event a5, new a5", "a5 a5"},
		"a read after versions were lost":  {"event a5, new a3", "a5 a3"},
		"a late read":                      {"event a5, late a3", "a5"},
		"a late read that is newer":        {"event a5, late a6", "a5 a6"},
		"a read that finds nothing":        {"event a5, new a-", "a5 a5-none"},
		"a late one that finds nothing":    {"event a5, late a-", "a5"},
		"a list":                           {"event a5, event b6, list 9 a5 b8", "a5 b6 a5 b8"},
		"a list without one":               {"event a5, event b6, list 9 a7", "a5 b6 a7 b9-none"},
		"a list after versions were lost":  {"event a5, event b6, list 3 a2", "a5 b6 a2 b3-none"},
		"an event after versions are lost": {"event a5, list 3 a2, event a4", "a5 a2 b3-none a4"},
		"a late list":                      {"event a5, event b6, late-list 4 a4", "a5 b6"},
		"a late list that is newer":        {"event a5, event b6, late-list 9 a9", "a5 b6 a9 b9-none"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			v := &View{Put: func(o Observation) {
				switch text := o.Name + o.Version; {
				case o.Deleted:
					got = append(got, text+"-deleted")
				case o.Lease == nil:
					got = append(got, text+"-none")
				default:
					got = append(got, text)
				}
			}}
			for step := range strings.SplitSeq(test.steps, ", ") {
				take(v, strings.Fields(step))
			}
			if !slices.Equal(got, strings.Fields(test.want)) {
				t.Errorf("the view has %s, want %s", got, test.want)
			}
		})
	}
}

// take carries out a step of the test.
func take(v *View, words []string) {
	what, name, version := words[0], words[1][:1], words[1][1:]
	l := leaseAt(name, version)
	if version == "-" {
		l = nil
	}
	switch what {
	case "event", "delete":
		v.Event(l, what == "delete")
	case "new":
		v.Read(name, l, v.Version(name))
	case "late":
		v.Read(name, l, "")
	case "list", "late-list":
		list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: words[1]}}
		for _, item := range words[2:] {
			list.Items = append(list.Items, *leaseAt(item[:1], item[1:]))
		}
		sentAt := map[string]string{"list": v.Newest()}[what]
		v.List(list, sentAt, map[string]bool{"a": true, "b": true})
	default:
		panic(fmt.Sprint("no step ", words))
	}
}
