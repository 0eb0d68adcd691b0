package rules

import (
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const docs = "../../docs/"

// reference has the labels of each series that docs/metrics-reference.md describes.
func reference(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(docs + "metrics-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z ]+) \\| `([a-z_`, ]+)` \\|")
	series := map[string][]string{}
	for _, match := range row.FindAllStringSubmatch(string(page), -1) {
		name, kind := match[1], match[2]
		// The server that scrapes adds these two labels.
		with := append(strings.Split(match[3], "`, `"), "job", "instance")
		series[name] = with
		if strings.HasSuffix(kind, "histogram") {
			series[name+"_sum"], series[name+"_count"] = with, with
		}
		if kind == "histogram" {
			series[name+"_bucket"] = append(slices.Clone(with), "le")
		}
	}
	if len(series) < 40 {
		t.Fatalf("the reference has %d series", len(series))
	}
	return series
}

// check parses an expression, and checks that the series and the labels in it exist.
func check(t *testing.T, series map[string][]string, where, text string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	selectors := 0
	var known []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			selectors++
			has, ok := series[selector.Name]
			if !ok {
				t.Errorf("%s: there is no series %q", where, selector.Name)
			}
			known = append(known, has...)
			for _, m := range selector.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(has, m.Name) {
					t.Errorf("%s: %s has no label %q", where, selector.Name, m.Name)
				}
			}
		}
		return nil
	})
	if selectors == 0 {
		t.Errorf("%s selects no series", where)
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		var used []string
		switch node := node.(type) {
		case *parser.AggregateExpr:
			used = node.Grouping
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				used = node.VectorMatching.MatchingLabels
			}
		}
		for _, label := range used {
			if !slices.Contains(known, label) {
				t.Errorf("%s: no series has the label %q", where, label)
			}
		}
		return nil
	})
}

// checkLabels checks that the labels of a template exist.
func checkLabels(t *testing.T, series map[string][]string, where, text string, use *regexp.Regexp) {
	t.Helper()
	for _, match := range use.FindAllStringSubmatch(text, -1) {
		known := false
		for _, has := range series {
			known = known || slices.Contains(has, match[1])
		}
		if !known {
			t.Errorf("%s: no series has the label %q", where, match[1])
		}
	}
}

func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(docs + "metrics/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation,
		parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	page, err := os.ReadFile(docs + "operate.md")
	if err != nil {
		t.Fatal(err)
	}
	series, rules := reference(t), 0
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			rules++
			check(t, series, rule.Alert, rule.Expr)
			checkLabels(t, series, rule.Alert, rule.Annotations["summary"], label)
			if !strings.Contains(string(page), "| `"+rule.Alert+"` |") {
				t.Errorf("docs/operate.md does not say what to do about %s", rule.Alert)
			}
		}
	}
	if rules == 0 {
		t.Error("there are no rules")
	}
}

func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(docs + "metrics/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	type query struct{ Expr, LegendFormat, Query string }
	var board struct {
		Panels []struct {
			ID          int
			Type, Title string
			Targets     []query
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	series := reference(t)
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	ids, queries := map[int]bool{}, 0
	for _, panel := range board.Panels {
		if ids[panel.ID] {
			t.Errorf("two panels have the id %d", panel.ID)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			queries++
			// Grafana replaces its variables before the server parses the query.
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			check(t, series, panel.Title, expr)
			checkLabels(t, series, panel.Title, target.LegendFormat, legend)
		}
	}
	if queries == 0 {
		t.Error("there are no queries")
	}
	variable := regexp.MustCompile(`label_values\((\w+)`)
	for _, match := range variable.FindAllStringSubmatch(string(text), -1) {
		if _, ok := series[match[1]]; !ok {
			t.Errorf("a variable is of %s, which does not exist", match[1])
		}
	}
}
