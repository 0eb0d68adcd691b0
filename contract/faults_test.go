package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// faultRow is a fault that apisim can inject, and the test of the contract's promise under it. The
// comment of a row explains how the promise is kept.
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
	slots bool // it is about slots; the others are run with slots and without them
	// dropIns adds the kinds of package tidingstest that are drop-ins.
	dropIns bool
	test    func(w *world)
	// elsewhere is a test that proves it, in the place of test.
	elsewhere func(*testing.T)
}

// inProtobuf are the kinds of informer that read protobuf.
var inProtobuf = []string{"typed", "metadata"}

// paged is for tests of lists in pages, of two objects each.
var paged = tidings.FactoryOptions{
	Transport: tidings.Transport{NoStreamedLists: true, PageSize: 2},
}

// streamedAndPaged are the two ways of a list.
var streamedAndPaged = map[string]tidings.FactoryOptions{"streamed": {}, "in pages": paged}

// faultRows has a row, at least, for each fault that apisim knows.
func faultRows() []faultRow {
	return slices.Concat(faultsOfRequests(), faultsOfStatuses(), faultsThatEndWatches(),
		faultsOfWatches(), faultsOfLists(), faultsOfServers(), faultsOfRewinds(),
		faultsOfParts(), faultsThatHarm())
}

// TestFaults runs the tests of the rows that have one of their own, but for TestFaultsThatHarm.
func TestFaults(t *testing.T) {
	runFaults(t, slices.DeleteFunc(faultRows(), func(row faultRow) bool {
		return row.test == nil || row.dropIns
	}))
}

// TestFaultsThatHarm runs the rows of ten minutes, with the drop-ins too.
func TestFaultsThatHarm(t *testing.T) { runFaults(t, faultsThatHarm()) }

func runFaults(t *testing.T, rows []faultRow) {
	costs := costTable{}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				if row.kinds != nil && !slices.Contains(row.kinds, kind) {
					continue
				}
				selection := tidings.Selection{Namespace: "default"}
				if row.selection != nil {
					selection = *row.selection
				}
				ask := func(w *world) probe {
					w.ask = kinds[kind]
					return w.ask(w.T, w.factory, selection)
				}
				if !row.slots {
					costs.add(row.name, kind, row.run(t, kind, nil, ask))
				}
				selection.Slots = tidings.NewSlots(tidings.ByUID, tidings.AllSlots())
				costs.add(row.name, kind, row.run(t, kind+" with slots", selection.Slots, ask))
			}
			if !row.dropIns {
				return
			}
			for name, open := range dropInKinds() {
				costs.add(row.name, name, row.run(t, name, nil, open))
			}
		})
	}
	costs.print()
}

// run runs the test of a row for one informer, and checks the bounds of all rows: the heap at its
// peak, and the text of the error that health reports.
func (row faultRow) run(
	t *testing.T, name string, slots *tidings.Slots, ask func(*world) probe,
) (c cost) {
	before, stop := watchHeap()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, row.options, apisim.Options{})
			defer w.end()
			w.slots, w.probe = slots, ask(w)
			row.test(w)
			if err := w.health().LastError; err != nil && len(err.Error()) > messageLimit {
				t.Errorf("the last error of its health has %d bytes", len(err.Error()))
			}
			c = w.cost
		})
	})
	c.heap = max(stop(), before) - before
	if c.heap > heapLimit {
		t.Errorf("%s: %d MiB of heap", name, c.heap>>20)
	}
	return c
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

// firstWatch and firstList match one request, aMoment is the time that an answer takes.
var (
	firstWatch = apisim.Match{Verb: "watch"}.Nth(1)
	firstList  = apisim.Match{Verb: "list"}.Nth(1)
	aMoment    = apisim.Delay(10 * time.Millisecond)
)

// mustList ends the watch so that the informer lists again.
func (w *world) mustList() {
	w.inject(firstWatch, apisim.Fail(0, 410))
	w.server.CutConnections()
}

// atVersion matches the watches from the version of the last write to an object.
func (w *world) atVersion(name string) apisim.Match {
	return apisim.Match{
		Verb: "watch", Query: map[string]string{"resourceVersion": w.versions[name]},
	}
}

// startFactory starts the factory and does not wait.
func (w *world) startFactory() {
	w.Helper()
	if d, ok := w.probe.(dropInProbe); ok {
		d.start(w.ctx)
		return
	}
	w.must(w.factory.Start(w.ctx))
}

// TestEachFaultHasARow reads apisim: each function that returns a Fault, and each method
// of its Server that does harm, needs a row.
func TestEachFaultHasARow(t *testing.T) {
	covered, named, known := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, row := range faultRows() {
		if named[row.name] {
			t.Errorf("two rows are called %q", row.name)
		}
		named[row.name] = true
		for name := range strings.FieldsSeq(row.covers) {
			covered[name] = true
		}
		if row.name == "" || row.covers == "" || (row.test == nil) == (row.elsewhere == nil) {
			t.Errorf("the row %q is not complete", row.name)
		}
	}
	harmless := strings.Fields("AddInstance Balance Close Config Create Delete ExpectRequests ForgetRequests Get " +
		"Inject List Listen ListenTLS Load LoadFrom ReadSnapshot Register Requests Seed ServeHTTP " +
		"Update Watches")
	for method := range reflect.TypeFor[*apisim.Server]().Methods() {
		known[method.Name] = !slices.Contains(harmless, method.Name)
	}
	files, err := filepath.Glob("../apisim/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if ok && f.Name.IsExported() && makesFault(f) {
				known[f.Name.Name] = true
			}
		}
	}
	for name, harms := range known {
		if harms && !covered[name] {
			t.Errorf("apisim.%s has no row: add one, or list it among the harmless", name)
		}
	}
	for name := range covered {
		if !known[name] {
			t.Errorf("a row is about %s, which apisim does not have", name)
		}
	}
}

func makesFault(f *ast.FuncDecl) bool {
	if f.Recv != nil || f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.Ident)
	return ok && result.Name == "Fault"
}
