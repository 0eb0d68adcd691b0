package until_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/cmd/tidings/internal/until"
)

func ready(generation, observed int64, status string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"generation": generation},
		"status": map[string]any{
			"phase": "Running", "replicas": int64(3), "observedGeneration": observed,
			"conditions": []any{map[string]any{"type": "Healthy", "status": "Unknown", "observedGeneration": int64(0)}, map[string]any{"type": "Ready", "status": status}},
			"containers": []any{map[string]any{"name": "a", "ready": true}, map[string]any{"name": "b", "ready": false}},
		},
	}
}

func TestConditionIsMet(t *testing.T) {
	for _, c := range []struct {
		expression string
		obj        map[string]any
		want       bool
	}{
		{"condition=Ready", ready(1, 1, "True"), true},
		{"condition=ready", ready(1, 1, "true"), true},
		{"condition=Ready", ready(1, 1, "False"), false},
		{"condition=Ready=False", ready(1, 1, "False"), true},
		{"condition=Ready", ready(2, 1, "True"), false},
		{"condition=Healthy=Unknown", ready(1, 1, "True"), false},
		{"condition=Missing", ready(1, 1, "True"), false},
		{"condition=Ready", map[string]any{}, false},
		{"condition=Ready", map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}, true},
		{"jsonpath={.status.phase}=Running", ready(1, 1, "True"), true},
		{"jsonpath=.status.phase=Running", ready(1, 1, "True"), true},
		{"jsonpath=status.phase=Running", ready(1, 1, "True"), true},
		{"jsonpath={.status.phase}=Pending", ready(1, 1, "True"), false},
		{"jsonpath={.status.replicas}=3", ready(1, 1, "True"), true},
		{"jsonpath={.status.phase}", ready(1, 1, "True"), true},
		{"jsonpath={.status.nothing}", ready(1, 1, "True"), false},
		{"jsonpath={.status.nothing}=x", ready(1, 1, "True"), false},
		{"jsonpath={.status.containers[5].name}", ready(1, 1, "True"), false},
		{"jsonpath={.status.containers[*].ready}=true", ready(1, 1, "True"), false},
		{`jsonpath={.status.containers[?(@.name=="a")].ready}=true`, ready(1, 1, "True"), true},
		{`jsonpath=.status.conditions[?(@.type=='Ready')].status=True`, ready(1, 1, "True"), true},
		{`jsonpath={.status.replicas}="3"`, ready(1, 1, "True"), true},
		{`jsonpath={.status.replicas}='3'`, ready(1, 1, "True"), true},
		{`jsonpath={.status.replicas}= "3" `, ready(1, 1, "True"), true},
		{`jsonpath={.status.phase}="Running"`, ready(1, 1, "True"), true},
		{`jsonpath={.path}=">3"`, map[string]any{"path": " >3\n"}, true},
		{`jsonpath={.status.containers[?(@.name>="c")].name}`, ready(1, 1, "True"), false},
		{"create", map[string]any{}, true},
		{"delete", map[string]any{}, false},
	} {
		condition, err := until.Parse(c.expression)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		if got, _ := condition.Examine(c.obj); got != c.want {
			t.Errorf("%s: met %v, want %v, of %v", c.expression, got, c.want, c.obj)
		}
		if condition.String() != c.expression {
			t.Errorf("String() is %q, want %q", condition, c.expression)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for expression, part := range map[string]string{
		"":                            "is no condition: choose condition=",
		"Ready":                       "is no condition: choose condition=",
		"condition":                   "is incomplete",
		"condition=":                  "is incomplete",
		"condition=Ready=":            "is incomplete",
		"create=now":                  "takes no value",
		"delete=now":                  "takes no value",
		"jsonpath=":                   "names no field",
		"jsonpath={}":                 "names no field",
		"jsonpath={.status.phase":     "cannot be read: a } is missing: write it as in",
		"jsonpath={.status.phase=x":   "cannot be read: a } is missing: write it as in",
		"jsonpath='{.spec.n}'=3":      "the path is in quotes: leave out the inner quotes",
		`jsonpath="{.spec.n}=3"`:      "the path is in quotes: leave out the inner quotes",
		"jsonpath={.status[}=x":       "cannot be read",
		"jsonpath={.status.phase}=":   "has no value after the =:",
		`jsonpath={.status.phase}=""`: "has no value after the =:",
		"jsonpath=>=3":                "names no field",
		"jsonpath={.spec.n}={.a}":     "the only comparison is with a text after one =: write it as in",
		"jsonpath={.spec.n}>=3":       "the only comparison",
		"jsonpath={.spec.n}>3":        "the only comparison",
		"jsonpath=spec.n < 3":         "the only comparison",
		"jsonpath={.spec.n}!=3":       "the only comparison",
		"jsonpath={.spec.n}==3":       "the only comparison",
		"jsonpath={.spec.n}= >3":      "the only comparison",
	} {
		if _, err := until.Parse(expression); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v, want %q", expression, err, part)
		}
	}
}

func TestPath(t *testing.T) {
	for expression, want := range map[string]string{
		"jsonpath=.status.phase=x": "{.status.phase}", "jsonpath={.a[?(@.b==\"c\")].d}": `{.a[?(@.b=="c")].d}`,
		"condition=Ready": "", "delete": "",
	} {
		condition, err := until.Parse(expression)
		if err != nil || condition.Path() != want {
			t.Errorf("%s has the path %q, %v", expression, condition.Path(), err)
		}
	}
}

func TestProgressCountsObjectsWithoutAValue(t *testing.T) {
	g := goal(t, "jsonpath={.status.replicas}=5", 2)
	set(g, 0, "a", ready(1, 1, "True"))
	set(g, 0, "b", map[string]any{})
	set(g, 1, "c", map[string]any{})
	if p := g.Progress(0); p.Unmet != 3 || p.Valueless != 2 {
		t.Errorf("%+v", p)
	}
}

func TestFound(t *testing.T) {
	for expression, want := range map[string]string{
		"condition=Ready":                       "Ready=False",
		"condition=Healthy":                     "Healthy=Unknown of an earlier generation",
		"condition=Missing":                     "no condition Missing",
		"jsonpath={.status.replicas}=4":         "3",
		"jsonpath={.status.containers[*].name}": "a, b",
		"jsonpath={.status.nothing}":            "no value",
		"jsonpath={.status.conditions}=x":       "[map[observedGeneration:0 status:Unknown type:Healthy] map[…",
		"delete":                                "",
	} {
		condition, err := until.Parse(expression)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := condition.Examine(ready(1, 1, "False")); got != want {
			t.Errorf("%s: found %q, want %q", expression, got, want)
		}
	}
}

// isReached reports whether a goal was reached.
func isReached(g *until.Goal) bool {
	select {
	case <-g.Reached():
		return true
	default:
		return false
	}
}

func goal(t *testing.T, expression string, selections int) *until.Goal {
	t.Helper()
	condition, err := until.Parse(expression)
	if err != nil {
		t.Fatal(err)
	}
	return until.NewGoal(condition, selections)
}

func TestGoalNeedsEveryObjectOfEverySelection(t *testing.T) {
	g := goal(t, "condition=Ready", 2)
	yes, no := ready(1, 1, "True"), ready(1, 1, "False")
	set(g, 0, "a", yes)
	set(g, 0, "b", no)
	g.Arm()
	if p := g.Progress(5); isReached(g) || p.Met != 1 || p.Unmet != 1 || strings.Join(p.Waiting, " ") != "b (Ready=False)" || !slices.Equal(p.Empty, []int{1}) {
		t.Fatalf("reached %v, progress %+v", isReached(g), p)
	}
	set(g, 0, "b", yes)
	if isReached(g) {
		t.Fatal("reached without any deployment")
	}
	set(g, 0, "a", no)
	set(g, 1, "a", yes)
	if isReached(g) {
		t.Fatal("reached while a pod has fallen back")
	}
	g.Delete(0, "a")
	if !isReached(g) {
		t.Fatalf("not reached: %+v", g.Progress(5))
	}
}

func set(g *until.Goal, index int, name string, obj map[string]any) { g.Set(index, name, obj, obj) }

func TestGoalHides(t *testing.T) {
	g := goal(t, "jsonpath={.data.password}=x", 1)
	g.Set(0, "a", map[string]any{"data": map[string]any{"password": "hunter2"}}, nil)
	g.Set(0, "b", map[string]any{}, nil)
	if got := strings.Join(g.Progress(5).Waiting, ", "); got != "a (hidden), b (no value)" {
		t.Errorf("waiting for %s", got)
	}
}

func TestGoalIsNotReachedBeforeItIsArmed(t *testing.T) {
	g := goal(t, "condition=Ready", 1)
	set(g, 0, "a", ready(1, 1, "True"))
	if isReached(g) {
		t.Fatal("reached while the first list may have more")
	}
	set(g, 0, "b", ready(1, 1, "False"))
	g.Arm()
	if isReached(g) {
		t.Fatal("reached while one is not ready")
	}
	set(g, 0, "b", ready(1, 1, "True"))
	if !isReached(g) {
		t.Fatal("not reached")
	}
	set(g, 0, "b", ready(1, 1, "False"))
	set(g, 0, "b", ready(1, 1, "True")) // once is enough
}

func TestGoalOfDeletion(t *testing.T) {
	g := goal(t, "delete", 2)
	set(g, 0, "a", nil)
	g.Arm()
	if isReached(g) {
		t.Fatal("reached while a pod is there")
	}
	g.Delete(0, "a")
	if !isReached(g) {
		t.Fatal("not reached")
	}
	none := goal(t, "delete", 1)
	none.Arm()
	if !isReached(none) {
		t.Fatal("not reached where there was nothing from the start")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"condition=Ready", "jsonpath={.status.phase}=Running", `jsonpath={.a[?(@.b=="c")].d}=e`, "delete", "jsonpath={range .items[*]}{.x}{end}"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, expression string) {
		if condition, err := until.Parse(expression); err == nil {
			condition.Examine(ready(1, 1, "True"))
		}
	})
}
