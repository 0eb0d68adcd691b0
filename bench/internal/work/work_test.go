package work

import (
	"encoding/json"
	"math"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// TestWork runs every case at its smallest size on every stack. A workload checks what it
// did by itself; here its metrics have to be figures.
func TestWork(t *testing.T) {
	for _, w := range All() {
		for _, c := range w.Cases(Tiny) {
			for _, s := range stack.All() {
				if !c.RunsOn(s) {
					continue
				}
				t.Run(c.String()+"/"+s.Name(), func(t *testing.T) { runTiny(t, w, Run{Case: c, Stack: s}) })
			}
		}
	}
}

func runTiny(t *testing.T, w Work, r Run) {
	if r.Server != nil {
		handler, err := server.New(*r.Server)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(handler)
		defer s.Close()
		r.URL = s.URL
	}
	metrics, err := w.Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range metrics {
		if seen[m.Name] {
			t.Errorf("two metrics are called %q", m.Name)
		}
		seen[m.Name] = true
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) || m.Value < 0 {
			t.Errorf("%s is %v", m.Name, m.Value)
		}
	}
	if len(metrics) == 0 {
		t.Error("there are no metrics")
	}
}

// TestCases asks that cases have names of their own at every size, and survive the way to
// another process.
func TestCases(t *testing.T) {
	for _, size := range []Size{Tiny, Quick, Full} {
		names := map[string]bool{}
		for _, w := range All() {
			for _, c := range w.Cases(size) {
				if names[c.String()] {
					t.Errorf("%s: two cases are called %q", size, c)
				}
				names[c.String()] = true
				if found, err := ByName(c.Work); err != nil || found != w {
					t.Errorf("%s: the work of %q is %q", size, c, c.Work)
				}
				text, err := json.Marshal(c)
				if err != nil {
					t.Fatal(err)
				}
				var again Case
				if err := json.Unmarshal(text, &again); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(c, again) {
					t.Errorf("%s: %+v comes back as %+v", size, c, again)
				}
			}
		}
	}
}
