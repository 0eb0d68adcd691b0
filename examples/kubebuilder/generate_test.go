package kubebuilder

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// output runs a command in a directory and returns its output.
func output(t *testing.T, dir, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = dir
	text, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, text)
	}
	return string(text)
}

// TestTheGeneratedFiles asks that generated files are those of the markers.
func TestTheGeneratedFiles(t *testing.T) {
	dir := t.TempDir()
	output(t, ".", "go", "tool", "controller-gen", "object", "rbac:roleName=manager-role", "crd",
		"paths=./...", "output:dir="+dir)
	for generated, name := range map[string]string{
		"zz_generated.deepcopy.go":          "api/v1alpha1/zz_generated.deepcopy.go",
		"cache.example.com_memcacheds.yaml": "config/crd/bases/cache.example.com_memcacheds.yaml",
		"role.yaml":                         "config/rbac/role.yaml",
	} {
		if readFile(t, filepath.Join(dir, generated)) != readFile(t, name) {
			t.Errorf("%s is not that of the markers: run go generate", name)
		}
	}
}

// rights returns the rights of rules, sorted. The name of the Lease of an election is LEASE.
func rights(rules []rbacv1.PolicyRule) (all []string) {
	for _, r := range rules {
		for _, verb := range r.Verbs {
			one := fmt.Sprint(verb, r.APIGroups, r.Resources)
			if len(r.ResourceNames) > 0 {
				one += " LEASE"
			}
			all = append(all, one)
		}
	}
	slices.Sort(all)
	return all
}

// rulesOf returns the rules of the roles in a manifest.
func rulesOf(t *testing.T, manifest string) (all []rbacv1.PolicyRule) {
	t.Helper()
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var role rbacv1.Role
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		all = append(all, role.Rules...)
	}
	return all
}

// TestTheMarkersOfThePage compares the roles that controller-gen makes from the markers of
// docs/kubebuilder.md with manifests that tests have run programs with.
func TestTheMarkersOfThePage(t *testing.T) {
	page := readFile(t, "../../docs/kubebuilder.md")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	blocks = slices.DeleteFunc(blocks, func(block []string) bool {
		return !strings.Contains(block[1], "+kubebuilder:rbac")
	})
	writers := rulesOf(t, readFile(t, "../controller/rbac.yaml"))
	writers = slices.DeleteFunc(writers, func(r rbacv1.PolicyRule) bool {
		return r.APIGroups[0] != "events.k8s.io"
	})
	want := [][]rbacv1.PolicyRule{
		writers,
		rulesOf(t, readFile(t, "../../controller/testdata/rbac/election.yaml")),
		rulesOf(t, readFile(t, "../../shard/testdata/rbac.yaml")),
	}
	if len(blocks) != len(want) {
		t.Fatalf("the page has %d blocks of markers, want %d", len(blocks), len(want))
	}
	generator := strings.TrimSpace(output(t, ".", "go", "tool", "-n", "controller-gen"))
	for i, block := range blocks {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"go.mod": "module page\n", "page.go": "package page\n\n" + block[1],
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		output(t, dir, generator, "rbac:roleName=role", "paths=./...", "output:dir=.")
		got, wanted := rights(rulesOf(t, readFile(t, filepath.Join(dir, "role.yaml")))), rights(want[i])
		if !slices.Equal(got, wanted) {
			t.Errorf("the markers of block %d give the rights\n%q, want\n%q", i+1, got, wanted)
		}
	}
}
