package tidings_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// faultRow is a fault that apisim can inject, and the test of what the contract promises
// under it. The comment of a row says how the promise is kept.
type faultRow struct {
	name string
	// covers are the names in apisim's API that it is about, with spaces between.
	covers  string
	options tidings.FactoryOptions
	// selection is that of the informer; without one it is of the namespace default.
	selection *tidings.Selection
	// kinds are the kinds of informer that it is for; nil is all. Typed and metadata
	// informers read protobuf, dynamic ones JSON.
	kinds []string
	test  func(w *world)
	// existing is a test elsewhere that proves it, in the place of test.
	existing string
}

// inProtobuf are the kinds of informer that read protobuf.
var inProtobuf = []string{"typed", "metadata"}

// paged is for tests of lists in pages, of two objects each.
var paged = tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: true, PageSize: 2}}

// faultRows has a row, at least, for each fault that apisim knows.
func faultRows() []faultRow {
	return slices.Concat(faultsOfRequests(), faultsOfStatuses(), faultsOfFrames(), faultsOfWatches(), faultsOfServers())
}

// TestFaults runs the tests of the rows that have one of their own.
func TestFaults(t *testing.T) {
	for _, row := range faultRows() {
		if row.existing != "" {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			selection := tidings.Selection{Namespace: "default"}
			if row.selection != nil {
				selection = *row.selection
			}
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				if row.kinds != nil && !slices.Contains(row.kinds, kind) {
					continue
				}
				t.Run(kind, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, kinds[kind], row.options, apisim.Options{})
						defer w.end()
						w.probe = w.ask(t, w.factory, selection)
						row.test(w)
					})
				})
			}
		})
	}
}

// ledger is a handler that adds up what it is told, and finds what cannot be.
type ledger struct {
	w *world

	mu       sync.Mutex // guards the rest
	objects  map[string]event
	deletes  []string // keys, in their order
	adds     int      // without the initial ones
	updates  int
	versions []string // of the cache at each call
}

// follow adds a ledger to the informer.
func (w *world) follow() *ledger {
	w.Helper()
	l := &ledger{w: w, objects: map[string]event{}}
	w.probe.handle(l.handle, tidings.HandlerOptions{})
	return l
}

func (l *ledger) handle(e event) {
	at, _ := l.w.probe.snapshot()()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions = append(l.versions, at)
	before, known := l.objects[e.Key]
	if known == (e.Type == tidings.Added) {
		l.w.Errorf("%v, known before: %v", e, known)
	}
	if known && e.Type == tidings.Updated && before.NewUID == e.NewUID && number(version(e.New)) < number(version(before.New)) {
		l.w.Errorf("%v went back, from %s to %s", e, version(before.New), version(e.New))
	}
	switch e.Type {
	case tidings.Deleted:
		delete(l.objects, e.Key)
		l.deletes = append(l.deletes, e.Key)
		return
	case tidings.Updated:
		l.updates++
	case tidings.Added:
		if !e.Initial {
			l.adds++
		}
	}
	l.objects[e.Key] = e
}

// number is a version of apisim as what it is; 0 is none.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// told returns how many adds, updates and deletes the handler was told of since the
// last call.
func (l *ledger) told() (adds, updates int, deletes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	adds, updates, deletes = l.adds, l.updates, l.deletes
	l.adds, l.updates, l.deletes = 0, 0, nil
	return adds, updates, deletes
}

// agrees checks that server, cache and handler have the same objects, and that the
// informer is well.
func (l *ledger) agrees() {
	l.w.Helper()
	l.w.agree()
	state := map[string]string{}
	l.mu.Lock()
	for key, e := range l.objects {
		state[key] = e.New
	}
	l.mu.Unlock()
	if cache := l.w.probe.state(); !maps.Equal(state, cache) {
		l.w.Errorf("the handler adds up to %v, the cache holds %v", state, cache)
	}
	if h := l.w.probe.informer().Health(); h.State != tidings.Watching {
		l.w.Errorf("health is %s after %v", h.State, h.LastError)
	}
}

// lists checks how many lists were begun.
func (l *ledger) lists(want uint64) {
	l.w.Helper()
	if got := l.w.probe.informer().Health().Lists; got != want {
		l.w.Errorf("%d lists, want %d", got, want)
	}
}

// says checks the last error.
func (l *ledger) says(want string) {
	l.w.Helper()
	if err := l.w.probe.informer().Health().LastError; err == nil || !strings.Contains(err.Error(), want) {
		l.w.Errorf("the last error is %v, want one that says %q", err, want)
	}
}

// has creates objects, starts everything and follows it.
func (w *world) has(names ...string) *ledger {
	w.Helper()
	for _, name := range names {
		w.create(name, "1")
	}
	l := w.follow()
	w.start()
	return l
}

// inject injects faults that some request has to meet.
func (w *world) inject(m apisim.Match, faults ...apisim.Fault) *apisim.Injection {
	w.Helper()
	injection := w.server.Inject(m, faults...)
	w.Cleanup(func() {
		if injection.Met() == 0 {
			w.Errorf("no request met the faults %v", faults)
		}
	})
	return injection
}

// reconnect has the informer made anew by a factory whose client is another one.
func (w *world) reconnect(o tidings.FactoryOptions, change func(*rest.Config)) {
	w.Helper()
	if err := w.factory.Shutdown(context.Background()); err != nil {
		w.Fatal(err)
	}
	config := w.server.Config()
	config.QPS = -1
	change(config)
	var err error
	if w.factory, err = tidings.NewFactory(config, o); err != nil {
		w.Fatal(err)
	}
	w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespace: "default"})
}

// after lets virtual time pass and then waits until nothing moves.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestEachFaultHasARow reads apisim: each function that returns a Fault, and each method
// of its Server that is none of those that are known to harm nobody, needs a row.
func TestEachFaultHasARow(t *testing.T) {
	covered, named, tests := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range functionsIn(t, "*_test.go") {
		tests[f.Name.Name] = true
	}
	for _, row := range faultRows() {
		if named[row.name] {
			t.Errorf("two rows are called %q", row.name)
		}
		named[row.name] = true
		for name := range strings.FieldsSeq(row.covers) {
			covered[name] = true
		}
		if row.name == "" || row.covers == "" || (row.test == nil) == (row.existing == "") {
			t.Errorf("the row %q is not complete", row.name)
		}
		if name, _, _ := strings.Cut(row.existing, "/"); name != "" && !tests[name] {
			t.Errorf("%s: there is no test %s", row.name, name)
		}
	}
	harmless := map[string]bool{}
	for name := range strings.FieldsSeq("Close Config Create Delete ExpectRequests ForgetRequests Get Inject List Listen Load LoadFrom ReadSnapshot Register Requests Seed ServeHTTP Update Watches") {
		harmless[name] = true
	}
	known := map[string]bool{}
	for _, f := range functionsIn(t, "apisim/*.go") {
		if f.Name.IsExported() && (makesFault(f) || receiver(f) == "(*Server)." && !harmless[f.Name.Name]) {
			known[f.Name.Name] = true
		}
	}
	for name := range known {
		if !covered[name] {
			t.Errorf("apisim.%s has no row among the faults: add one, or list it among the harmless", name)
		}
	}
	for name := range covered {
		if !known[name] {
			t.Errorf("a row is about %s, which apisim does not have", name)
		}
	}
}

// functionsIn returns the functions and methods of files.
func functionsIn(t *testing.T, pattern string) []*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of %s: %v", pattern, err)
	}
	var functions []*ast.FuncDecl
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok {
				functions = append(functions, f)
			}
		}
	}
	return functions
}

func makesFault(f *ast.FuncDecl) bool {
	if f.Recv != nil || f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "Fault"
}

// receiver is what stands before the name of a method, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of, before, after := f.Recv.List[0].Type, "", "."
	if pointer, ok := of.(*ast.StarExpr); ok {
		of, before, after = pointer.X, "(*", ")."
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	name, ok := of.(*ast.Ident)
	if !ok {
		return ""
	}
	return before + name.Name + after
}
