package metrics

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// read decodes a document of a file of docs/metrics.
func read(t *testing.T, name string, document int) (content map[string]any) {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(strings.Split(string(text), "\n---\n")[document]), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// TestPrometheusRuleHasTheRules: the manifest for the Prometheus operator has the rules of the file
// for Prometheus, and no others.
func TestPrometheusRuleHasTheRules(t *testing.T) {
	manifest, rules := read(t, "prometheusrule.yaml", 0), read(t, "alerts.yaml", 0)
	if manifest["kind"] != "PrometheusRule" || !reflect.DeepEqual(manifest["spec"], any(rules)) {
		t.Error("prometheusrule.yaml has other rules than alerts.yaml: copy them")
	}
}

// TestServiceMonitorSelectsItsService by its labels, and a port that it has.
func TestServiceMonitorSelectsItsService(t *testing.T) {
	service, monitor := read(t, "servicemonitor.yaml", 0), read(t, "servicemonitor.yaml", 1)
	spec := monitor["spec"].(map[string]any)
	endpoint := spec["endpoints"].([]any)[0].(map[string]any)
	port := service["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)
	labels := spec["selector"].(map[string]any)["matchLabels"]
	if !reflect.DeepEqual(service["metadata"].(map[string]any)["labels"], labels) || endpoint["port"] != port["name"] {
		t.Errorf("the monitor selects %v and the port %v", labels, endpoint["port"])
	}
}
