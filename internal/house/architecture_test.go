package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// enterRoot makes the root of the repository the working directory of a test.
func enterRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}

const module = "github.com/tidings-go/tidings"

// wall says what a package may import beside the standard library.
type wall struct {
	rooms  []string // packages of this module
	others []string // import paths of other modules, each with what lies below it
	tests  []string // what its tests may import on top, in either form; "*" is anything
	// dropIn lets it import client-go's own informers.
	dropIn bool
}

var (
	informerRooms = []string{".", "store", "health", "internal/change", "internal/engine", "internal/delta", "internal/fanout", "source", "internal/dedup", "internal/reflector"}
	// walls has an entry for every package, lowest first: the one source of what it may
	// import. One of a directory holds for what is below it and has none of its own.
	walls = map[string]wall{
		"store":                    {tests: []string{"store", "pgregory.net/rapid"}},
		"internal/change":          {},
		"internal/histogram":       {},
		"internal/delta":           {rooms: []string{"internal/change"}, tests: []string{"internal/delta", "store", "pgregory.net/rapid"}},
		"internal/fanout":          {rooms: []string{"internal/change", "internal/histogram"}, tests: []string{"internal/fanout", "pgregory.net/rapid"}},
		"internal/dedup":           {rooms: []string{"internal/fieldpath", "internal/wire"}, others: []string{"k8s.io/apimachinery", "sigs.k8s.io/json"}, tests: []string{"*"}},
		"internal/dedup/deduptest": {rooms: []string{"internal/wire"}, others: []string{"k8s.io/apimachinery"}, tests: []string{"*"}},
		"internal/tape":            {},
		"flight": {
			rooms:  []string{"internal/fieldpath", "internal/tape"},
			others: []string{"github.com/klauspost/compress/zstd", "k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"source": {
			rooms: []string{"internal/dedup", "internal/fieldpath", "internal/tape", "internal/wire"},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/client-go/rest", "k8s.io/client-go/tools/metrics", "k8s.io/client-go/util/flowcontrol",
				"sigs.k8s.io/json",
			},
			tests: []string{"*"},
		},
		"health": {rooms: []string{"source", "internal/histogram"}},
		"internal/engine": {
			rooms: []string{"store", "health", "internal/change", "internal/delta", "internal/fanout", "internal/histogram", "internal/dedup", "internal/inspect", "internal/slot", "internal/tape", "source", "internal/reflector"},
			tests: []string{"*"},
		},
		"internal/reflector": {
			rooms:  []string{"internal/lograte", "health", "source", "internal/delta", "internal/slot"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/fieldpath": {},
		"internal/wire":      {},
		"internal/metaindex": {
			rooms:  []string{"store"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/builtin": {
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/fielddiff": {
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/lograte":   {},
		"internal/logtable":  {},
		"internal/footprint": {rooms: []string{"internal/inspect"}, tests: []string{"*"}},
		"internal/inspect":   {rooms: []string{"health", "internal/change", "internal/slot", "source"}, others: []string{"k8s.io/apimachinery"}},
		".": {
			rooms:  []string{"internal/lograte", "store", "health", "internal/change", "internal/engine", "internal/delta", "internal/fanout", "source", "internal/dedup", "internal/reflector", "internal/builtin", "internal/fielddiff", "internal/fieldpath", "internal/inspect", "internal/metaindex", "internal/slot"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/rest", "k8s.io/client-go/kubernetes/scheme"},
			tests:  []string{"*"},
		},
		"controller/internal/queue": {others: []string{"k8s.io/client-go/util/workqueue"}},
		"controller/guard": {
			rooms:  []string{"internal/wire"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"internal/lease": {
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "golang.org/x/sys/unix"},
			tests:  []string{"*"},
		},
		"internal/lease/leasetest": {
			rooms: []string{"apisim", "internal/seeds"},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "k8s.io/klog/v2",
				"github.com/go-logr/logr",
			},
		},
		"internal/written": {
			rooms:  []string{"controller/guard", "internal/delta", "source"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"controller/election": {
			rooms:  []string{"internal/lease"},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"controller": {
			rooms: []string{
				".", "controller/guard", "controller/internal/queue", "controller/election",
				"health", "internal/dedup", "internal/delta", "internal/fielddiff", "internal/histogram",
				"internal/inspect", "internal/lograte", "internal/slot", "internal/written", "source",
			},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/rest", "k8s.io/client-go/util/workqueue"},
			tests:  []string{"*"},
		},
		"controller/objects": {
			rooms:  []string{"."},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/applyconfigurations/meta/v1"},
			tests:  []string{"*"},
		},
		"controller/recorder": {
			others: []string{
				"k8s.io/apimachinery", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest",
				"k8s.io/client-go/tools/events",
			},
			tests: []string{"*"},
		},
		"internal/slot": {tests: []string{"internal/slot", "k8s.io/apimachinery"}},
		"shard": {
			rooms: []string{
				"controller/guard", "internal/lease", "internal/slot", "shard/internal/plan",
				"shard/internal/protocol",
			},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"shard/internal/protocol": {},
		"shard/internal/plan":     {rooms: []string{"shard/internal/protocol"}, tests: []string{"internal/seeds"}},
		"metrics": {
			rooms: []string{
				"health", "controller", "controller/election", "controller/guard", "internal/footprint",
				"internal/histogram", "internal/inspect", "shard",
			},
			others: []string{"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_model"},
			tests:  []string{"*"},
		},
		"tracing": {
			rooms:  []string{"source"},
			others: []string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/trace"},
			tests:  []string{"*"},
		},
		"debug": {
			rooms: []string{
				".", "controller", "controller/election", "controller/guard", "flight", "health", "source",
				"internal/dedup", "internal/fielddiff", "internal/fieldpath", "internal/footprint",
				"internal/inspect", "shard",
			},
			others: []string{"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/structured-merge-diff/v6/fieldpath", "sigs.k8s.io/yaml"},
			tests:  []string{"*"},
		},
		"apisim": {
			rooms: []string{"internal/builtin"},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/applyconfigurations", "k8s.io/client-go/discovery", "k8s.io/client-go/kubernetes/scheme",
				"k8s.io/client-go/rest", "k8s.io/client-go/util/jsonpath", "github.com/tidwall/btree",
				"google.golang.org/protobuf/encoding/protowire", "google.golang.org/protobuf/proto",
				"github.com/google/gnostic-models/openapiv2", "gopkg.in/evanphx/json-patch.v4", "sigs.k8s.io/structured-merge-diff/v6",
			},
			tests: []string{"*"},
		},
		"apiserver": {
			others: []string{"k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"apisim/protocoltest": {
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go"},
			tests:  []string{"*"},
		},
		"clientgo/internal/listwatch": {
			rooms:  []string{"source", "internal/delta", "internal/dedup", "internal/tape"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo/internal/sharedinformer": {
			rooms:  append([]string{"clientgo/internal/listwatch", "internal/inspect", "internal/lograte", "internal/metaindex", "internal/slot"}, informerRooms...),
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "github.com/go-logr/logr"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo/internal/factory": {
			rooms:  []string{"clientgo/cache", "clientgo/internal/listwatch", "clientgo/internal/sharedinformer", "internal/fieldpath", "internal/inspect", "internal/slot", "health", "source", "internal/dedup"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo": {
			rooms:  append([]string{"clientgo/cache", "clientgo/internal", "internal/builtin", "internal/fieldpath", "internal/metaindex"}, informerRooms...),
			others: []string{"k8s.io"},
			tests:  []string{"*"}, dropIn: true,
		},
		"internal/follow": {
			rooms:  []string{".", "internal/delta"},
			others: []string{"k8s.io/apimachinery"},
		},
		// One test compares with client-go's own informer.
		"tidingstest": {
			rooms:  []string{".", "health", "source", "internal/follow", "clientgo/cache", "clientgo/informers", "clientgo/dynamicinformer", "clientgo/metadatainformer"},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic", "k8s.io/client-go/metadata"},
			tests:  []string{"*"}, dropIn: true,
		},
		"cmd":                 {rooms: []string{"*"}, others: []string{"*"}, tests: []string{"*"}},
		"examples":            {rooms: []string{"."}, others: []string{"k8s.io"}, tests: []string{"*"}},
		"examples/controller": {rooms: []string{".", "controller", "controller/objects", "controller/recorder", "metrics"}, others: []string{"k8s.io", "github.com/prometheus/client_golang/prometheus"}, tests: []string{"*"}},
		"examples/manager":    {rooms: []string{".", "controller", "controller/objects", "examples/clientgo/command"}, others: []string{"k8s.io"}, tests: []string{"*"}},
		"examples/sharded": {
			rooms:  []string{".", "apisim", "controller", "debug", "metrics", "shard"},
			others: []string{"k8s.io", "github.com/prometheus/client_golang/prometheus"},
			tests:  []string{"*"},
		},
		"examples/customtype": {rooms: []string{".", "examples/clientgo/customtype/apis"}, others: []string{"k8s.io"}, tests: []string{"*"}},
		"examples/clientgo": {
			rooms:  []string{"clientgo/cache", "clientgo/informers", "clientgo/dynamicinformer", "clientgo/metadatainformer", "examples/clientgo"},
			others: []string{"k8s.io"},
			tests:  []string{"*"}, dropIn: true,
		},
		"internal/gen":        {rooms: []string{"internal/gen"}, others: []string{"k8s.io"}, tests: []string{"*"}, dropIn: true},
		"internal/secrets":    {tests: []string{"*"}, dropIn: true},
		"internal/hostile":    {tests: []string{"*"}, dropIn: true},
		"internal/rollout":    {tests: []string{"*"}, dropIn: true},
		"internal/simulation": {tests: []string{"*"}, dropIn: true},
		"internal/seeds":      {},
		"internal/mutants":    {rooms: []string{"internal/gen"}},
		"internal/house":      {},
	}
	// nowhere are client-go's own informers, which only the drop-ins import.
	nowhere = []string{"k8s.io/client-go/tools/cache", "k8s.io/client-go/informers", "k8s.io/client-go/listers"}
	// heavy takes long to compile and must not come with the native API.
	heavy = []string{
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/tools/cache",
		"k8s.io/cli-runtime", "github.com/spf13/cobra", "sigs.k8s.io/kustomize", "github.com/prometheus",
		"github.com/klauspost/compress", "charm.land", "go.opentelemetry.io",
	}
)

// goFile is a parsed Go file of this module.
type goFile struct {
	dir  string // slash-separated, "." for the root
	name string
	ast  *ast.File
}

// goFiles parses the imports and the comments of every Go file.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	fset := token.NewFileSet()
	walk(t, ".go", func(name string) {
		parsed, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if isIgnored(parsed) {
			return
		}
		files = append(files, goFile{dir: path.Dir(name), name: path.Base(name), ast: parsed})
	})
	return files
}

// isIgnored reports whether a file belongs to no package: what others are built from.
func isIgnored(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Text == "//go:build ignore" && comment.Pos() < file.Package {
				return true
			}
		}
	}
	return false
}

// walk calls f with the slash-separated name of every file of an extension, but for
// what the go command ignores too.
func walk(t *testing.T, extension string, f func(name string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() && name != "." && isModule(name):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, extension):
			f(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isModule reports whether a directory is a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func TestArchitectureWalls(t *testing.T) {
	enterRoot(t)
	for _, file := range goFiles(t) {
		rule, ok := wallOf(file.dir)
		if !ok {
			t.Errorf("%s: package %q has no entry in walls: say there what it may import",
				file.name, file.dir)
			continue
		}
		isTest := strings.HasSuffix(file.name, "_test.go")
		for _, spec := range file.ast.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if !rule.allows(imported, isTest) {
				t.Errorf("%s imports %s, which package %q may not by its entry in walls",
					path.Join(file.dir, file.name), imported, file.dir)
			}
		}
	}
}

func wallOf(dir string) (wall, bool) {
	for ; dir != "."; dir = path.Dir(dir) {
		if w, ok := walls[dir]; ok {
			return w, true
		}
	}
	w, ok := walls[dir]
	return w, ok
}

func (w wall) allows(imported string, isTest bool) bool {
	if within(imported, nowhere...) && !w.dropIn {
		return false
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	room, ours := roomOf(imported)
	if isTest &&
		(slices.Contains(w.tests, "*") || slices.Contains(w.tests, room) || within(imported, w.tests...)) {
		return true
	}
	if ours {
		return slices.Contains(w.rooms, "*") || slices.Contains(w.rooms, room) || room != "." && within(room, w.rooms...)
	}
	return slices.Contains(w.others, "*") || within(imported, w.others...)
}

// roomOf returns the directory of a package of this module.
func roomOf(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// within reports whether a path is one of some, or lies below one.
func within(name string, some ...string) bool {
	return slices.ContainsFunc(some, func(s string) bool { return name == s || strings.HasPrefix(name, s+"/") })
}

// TestArchitectureSimulator keeps the simulator an independent witness: neither it
// nor its tests may share code with what they judge.
func TestArchitectureSimulator(t *testing.T) {
	enterRoot(t)
	for _, file := range goFiles(t) {
		if file.dir != "apisim" {
			continue
		}
		for _, spec := range file.ast.Imports {
			room, ours := roomOf(strings.Trim(spec.Path.Value, `"`))
			if ours && slices.Contains(informerRooms, room) {
				t.Errorf("apisim/%s imports %s of the informer", file.name, room)
			}
		}
	}
}

// TestArchitectureLight looks at everything that a user of the native API compiles.
func TestArchitectureLight(t *testing.T) {
	enterRoot(t)
	for imported := range strings.FieldsSeq(goCommand(t, "list", "-deps", ".")) {
		if within(imported, heavy...) && !within(imported, "k8s.io/client-go/kubernetes/scheme") {
			t.Errorf("the native API brings %s with it", imported)
		}
	}
}

// goCommand runs the go command in the module's root and returns what it prints.
func goCommand(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", arguments...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return string(out)
}

// TestArchitecturePackageDocs asks for a comment on every package: in doc.go for
// those that a user can import.
func TestArchitecturePackageDocs(t *testing.T) {
	enterRoot(t)
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file.name, "_test.go") ||
			strings.Contains(file.dir+"/", "/generated/") {
			continue
		}
		has := file.ast.Doc != nil && (file.name == "doc.go" || file.ast.Name.Name == "main" || strings.HasPrefix(file.dir, "internal/"))
		documented[file.dir] = documented[file.dir] || has
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			t.Errorf("package %q has no comment in %s", dir, path.Join(dir, "doc.go"))
		}
	}
	page := readFile(t, "ARCHITECTURE.md")
	for dir := range documented {
		if within(dir, "cmd/tidings/internal", "examples/clientgo", "internal/gen") {
			continue // the command and their pages lead to these
		}
		if !strings.Contains(page, "]("+dir+")") &&
			!strings.Contains(page, "]("+path.Join(dir, "doc.go")+")") {
			t.Errorf("ARCHITECTURE.md does not lead to package %q", dir)
		}
	}
}
