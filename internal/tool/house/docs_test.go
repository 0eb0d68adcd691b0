package house

import (
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages returns the names of all Markdown files.
func pages(t *testing.T) []string {
	t.Helper()
	var names []string
	walk(t, ".md", func(name string) { names = append(names, name) })
	return names
}

var (
	fence   = regexp.MustCompile("(?ms)^```(\\w*)\\n(.*?)^```$")
	span    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// TestDocsLinks follows every link within the repository, with its anchor.
func TestDocsLinks(t *testing.T) {
	enterRoot(t)
	for _, page := range pages(t) {
		text := span.ReplaceAllString(fence.ReplaceAllString(readFile(t, page), ""), "")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := page
			if target != "" {
				to = path.Join(path.Dir(page), target)
			}
			if _, err := os.Stat(filepath.FromSlash(to)); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(readFile(t, to)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", page, match[1])
			}
		}
	}
}

// anchors returns the anchors of the headings of a page, by GitHub's rule: lower
// case, spaces to hyphens, nothing else but letters, digits, hyphens and underscores.
func anchors(page string) []string {
	var list []string
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(match[1])))
	}
	return list
}

// TestDocsIndex asks that the index of docs leads to every page there.
func TestDocsIndex(t *testing.T) {
	enterRoot(t)
	index := readFile(t, "docs/README.md")
	for _, page := range pages(t) {
		if name, ok := strings.CutPrefix(page, "docs/"); ok && name != "README.md" &&
			!strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not lead to %s", page)
		}
	}
}

// TestDocsDependencies asks that DEPENDENCIES.md has a line for each direct
// requirement of go.mod, and for no other module.
func TestDocsDependencies(t *testing.T) {
	enterRoot(t)
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal([]byte(goCommand(t, "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	var required, justified []string
	for _, r := range mod.Require {
		if !r.Indirect {
			required = append(required, r.Path)
		}
	}
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(readFile(t, "DEPENDENCIES.md"), -1) {
		justified = append(justified, match[1])
	}
	for _, name := range required {
		if !slices.Contains(justified, name) {
			t.Errorf("DEPENDENCIES.md does not say why %s is required", name)
		}
	}
	for _, name := range justified {
		if !slices.Contains(required, name) {
			t.Errorf("DEPENDENCIES.md has a line for %s, which go.mod does not require directly", name)
		}
	}
}

// block is a fenced block of a page.
type block struct {
	page     string
	line     int // of its first line of text
	language string
	text     string
	output   string // of the block that follows, if its language is "output"
}

// blocks returns the fenced blocks of the pages whose code is compiled.
func blocks(t *testing.T) []block {
	t.Helper()
	var list []block
	for _, page := range pages(t) {
		if page != "README.md" && !strings.HasPrefix(page, "docs/") {
			continue
		}
		text := readFile(t, page)
		for _, match := range fence.FindAllStringSubmatchIndex(text, -1) {
			b := block{
				page: page, language: text[match[2]:match[3]], text: text[match[4]:match[5]],
				line: strings.Count(text[:match[4]], "\n") + 1,
			}
			if b.language == "output" && len(list) > 0 && list[len(list)-1].page == page {
				list[len(list)-1].output = b.text
				continue
			}
			list = append(list, b)
		}
	}
	return list
}

// packages are the packages that a fragment of code may use without an import.
var packages = map[string]string{
	"cache":           module + "/clientgo/cache",
	"clientgoscheme":  "k8s.io/client-go/kubernetes/scheme",
	"shopv1":          module + "/examples/clientgo/customtype/apis/shop/v1",
	"appsv1":          "k8s.io/api/apps/v1",
	"apierrors":       "k8s.io/apimachinery/pkg/api/errors",
	"apiserver":       module + "/apiserver",
	"apisim":          module + "/apisim",
	"kubernetes":      "k8s.io/client-go/kubernetes",
	"runtime":         "k8s.io/apimachinery/pkg/runtime",
	"tidingstest":     module + "/tidingstest",
	"context":         "context",
	"controller":      module + "/controller",
	"corev1":          "k8s.io/api/core/v1",
	"debug":           module + "/debug",
	"dynamic":         "k8s.io/client-go/dynamic",
	"dynamicinformer": module + "/clientgo/dynamicinformer",
	"errors":          "errors",
	"flight":          module + "/flight",
	"trace":           "go.opentelemetry.io/otel/trace",
	"tracing":         module + "/tracing",
	"fmt":             "fmt",
	"http":            "net/http",
	"iter":            "iter",
	"informers":       module + "/clientgo/informers",
	"json":            "encoding/json",
	"labels":          "k8s.io/apimachinery/pkg/labels",
	"log":             "log",
	"klog":            "k8s.io/klog/v2",
	"logr":            "github.com/go-logr/logr",
	"metrics":         module + "/metrics",
	"metav1":          "k8s.io/apimachinery/pkg/apis/meta/v1",
	"objects":         module + "/controller/objects",
	"prometheus":      "github.com/prometheus/client_golang/prometheus",
	"promhttp":        "github.com/prometheus/client_golang/prometheus/promhttp",
	"recorder":        module + "/controller/recorder",
	"reflector":       module + "/internal/engine/reflector",
	"rest":            "k8s.io/client-go/rest",
	"schema":          "k8s.io/apimachinery/pkg/runtime/schema",
	"slog":            "log/slog",
	"shard":           module + "/shard",
	"source":          module + "/source",
	"synctest":        "testing/synctest",
	"testing":         "testing",
	"tidings":         module,
	"time":            "time",
	"unstructured":    "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured",
}

// names are the variables that a fragment of code may use without a declaration.
var names = []string{
	"ctx context.Context",
	"client kubernetes.Interface",
	"check func(error)",
	"t *testing.T",
	"server *apisim.Server",
	"dynamicClient dynamic.Interface",
	"config *rest.Config",
	"factory *tidings.Factory",
	"deployments *tidings.Informer[*appsv1.Deployment]",
	"pods *tidings.Informer[*corev1.Pod]",
	"podInformer cache.SharedIndexInformer",
	"reg *tidings.Registration",
	"logger *slog.Logger",
	"manager *controller.Manager",
	"guard *controller.Guard",
	"settings *tidings.Informer[*corev1.ConfigMap]",
	"reconcile controller.Func[*appsv1.Deployment]",
	"collector *metrics.Collector",
}

// TestDocsCode compiles the Go code of README.md and docs. A block that begins with a package clause
// is a program, or belongs to the program of its page before it: see [programsOf]. Any other block is
// a fragment: the body of a function that knows names and packages.
func TestDocsCode(t *testing.T) {
	enterRoot(t)
	all := blocks(t)
	var fragments []block
	for _, b := range all {
		if b.language != "go" {
			continue
		}
		if !strings.HasPrefix(b.text, "package ") {
			fragments = append(fragments, b)
		}
		checkFormat(t, b)
	}
	t.Run("programs", func(t *testing.T) { checkPrograms(t, all) })
	t.Run("fragments", func(t *testing.T) { checkFragments(t, fragments) })
}

// checkFormat asks that gofmt has nothing to change in a block of Go.
func checkFormat(t *testing.T, b block) {
	t.Helper()
	formatted, err := format.Source([]byte(b.text))
	if err != nil {
		t.Errorf("%s:%d: %v", b.page, b.line, err)
	} else if string(formatted) != b.text {
		t.Errorf("%s:%d: gofmt would change the code to\n%s", b.page, b.line, formatted)
	}
}

// checkFragments compiles all fragments as one package. A fragment may declare names that it does
// not use.
func checkFragments(t *testing.T, fragments []block) {
	dir := t.TempDir()
	arguments := []string{"build", "-gcflags=-e"}
	for i, b := range fragments {
		parameters := strings.Join(names, ", ")
		var file strings.Builder
		file.WriteString("package fragments\n\nimport (\n")
		for name, from := range packages {
			if regexp.MustCompile(`\b` + name + `\.`).MatchString(parameters + "\n" + b.text) {
				fmt.Fprintf(&file, "\t%s %q\n", name, from)
			}
		}
		fmt.Fprintf(&file, ")\n\nfunc _(%s) error {\n{\n//line %s:%d\n%s}\npanic(0)\n}\n", parameters, b.page, b.line, b.text)
		name := filepath.Join(dir, fmt.Sprintf("fragment%d.go", i))
		writeFile(t, name, file.String())
		arguments = append(arguments, name)
	}
	out, err := exec.CommandContext(t.Context(), "go", arguments...).CombinedOutput()
	if err == nil {
		return
	}
	failed := false
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "#") || strings.Contains(line, "declared and not used") {
			continue
		}
		failed = true
		t.Error(strings.TrimSpace(line))
	}
	if !failed && !strings.Contains(string(out), "declared and not used") {
		t.Errorf("go %s: %v", strings.Join(arguments, " "), err)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
