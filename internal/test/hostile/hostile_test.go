package hostile

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	upstream "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/tidingstest"
)

var printTable = flag.Bool("hostile.table", false, "print the table of docs/reports/security.md")

const (
	// objects is the number of objects of the server.
	objects = 20
	// leastRequests is the number of requests that every informer may send while a server is
	// hostile: one in ten seconds.
	leastRequests = int(length / (10 * time.Second))
	// heapLimit bounds the heap of an attack, beside the test's own answers.
	heapLimit = 256 << 20
	// messageLimit bounds the text of an error in Health, in bytes.
	messageLimit = 4 << 10
	// recovery bounds the time until an informer has caught up with an honest server.
	recovery = 10 * time.Minute
	// stock is the kind that all others are compared with.
	stock = "client-go"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func TestMain(m *testing.M) {
	flag.Parse()
	// In a bubble they would sleep for years (see docs/testing.md).
	utilruntime.ErrorHandlers = nil //nolint:reassign // as tests in bubbles do
	klog.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// subject is an informer of any kind.
type subject interface {
	Run(ctx context.Context) error
	List() []tidings.Object
}

// clientGo is client-go's own informer.
type clientGo struct{ upstream.SharedIndexInformer }

func (c clientGo) Run(ctx context.Context) error {
	c.RunWithContext(ctx)
	return nil
}

func (c clientGo) List() (list []tidings.Object) {
	for _, obj := range c.GetStore().List() {
		list = append(list, obj.(tidings.Object))
	}
	return list
}

// kinds returns constructors of informers of each kind, client-go's first.
func kinds() (names []string, open map[string]func(tidingstest.Setting) (subject, error)) {
	names, open = []string{stock}, map[string]func(tidingstest.Setting) (subject, error){
		stock: func(s tidingstest.Setting) (subject, error) {
			client, err := kubernetes.NewForConfig(s.Config)
			if err != nil {
				return nil, err
			}
			factory := informers.NewSharedInformerFactory(client, 0)
			return clientGo{factory.Core().V1().ConfigMaps().Informer()}, nil
		},
	}
	for _, k := range tidingstest.Kinds() {
		if k.Namespaces < 2 {
			names = append(names, k.Name)
			open[k.Name] = func(s tidingstest.Setting) (subject, error) { return k.New(s) }
		}
	}
	return names, open
}

// outcome is the measurement of an informer under an attack.
type outcome struct {
	requests  int
	heap      uint64 // bytes at the peak, above those before
	lastError string // of Health
	healthy   bool   // Health reports no error
	followed  bool   // the cache was the server's state while it was hostile
	recovered time.Duration
}

func TestHostileServers(t *testing.T) {
	names, open := kinds()
	var table strings.Builder
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			outcomes := map[string]outcome{}
			for _, name := range names {
				before, stop := watchHeap()
				synctest.Test(t, func(t *testing.T) { outcomes[name] = a.run(t, open[name]) })
				o := outcomes[name]
				o.heap = max(stop(), before) - before
				outcomes[name] = o
			}
			for _, name := range names[1:] {
				outcomes[name].check(t, a, name, outcomes[stock])
			}
			line(&table, a, names, outcomes)
		})
	}
	if *printTable {
		fmt.Printf("%s%s", head, &table)
	}
}

// run attacks one informer and waits until it has recovered.
func (a attack) run(t *testing.T, open func(tidingstest.Setting) (subject, error)) (o outcome) {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the test is over
	for i := range objects {
		write(t, server, i, "before")
	}
	server.RefuseStreamedLists(a.pages)
	config := server.Config()
	informer, err := open(tidingstest.Setting{Config: config, Namespaces: []string{"default"},
		Index: func(tidings.Object) ([]string, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	ended := make(chan error, 1)
	run := func() { go func() { ended <- informer.Run(ctx) }() }
	if !a.first {
		run()
		await(t, server, informer, recovery)
	}
	faults := a.faults
	if a.answer != nil {
		faults = []apisim.Fault{apisim.Answer(a.answer)}
	}
	if a.half {
		a.match.Probability = 0.5
	}
	// Virtual time passes for informers that send requests without a pause, as client-go does
	// after bookmarks.
	hostile := server.Inject(a.match, append([]apisim.Fault{apisim.Delay(500 * time.Millisecond)},
		faults...)...)
	begun := len(server.Requests())
	server.CutConnections()
	if a.first {
		run()
	}
	time.Sleep(time.Second)
	write(t, server, 0, "meanwhile")
	time.Sleep(length)
	synctest.Wait()
	o = a.observe(t, server, begun, informer)
	hostile.Lift()
	write(t, server, 1, "after")
	o.recovered = await(t, server, informer, 10*recovery)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the informer did not stop: %v", err)
	}
	return o
}

// observe returns the outcome at the end of an attack that began after so many requests.
func (a attack) observe(
	t *testing.T, server *apisim.Server, begun int, informer subject,
) (o outcome) {
	for _, r := range server.Requests()[begun:] {
		// The honest pages of a list are one request.
		if len(r.Faults) > 0 || r.Query.Get("continue") == "" {
			o.requests++
		}
	}
	if of, ok := informer.(interface{ Health() tidings.Health }); ok {
		h := of.Health()
		o.healthy = h.Synced && h.LastError == nil && h.Dropped == 0
		if h.LastError != nil {
			o.lastError = h.LastError.Error()
		}
	}
	o.followed = maps.Equal(state(informer.List()), serverState(t, server))
	return o
}

// write creates or changes an object.
func write(t *testing.T, server *apisim.Server, n int, value string) {
	t.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
		Name: fmt.Sprint("object-", n), Labels: map[string]string{"value": value}}}
	_, err := server.Create(context.Background(), obj)
	if err != nil {
		_, err = server.Update(context.Background(), obj)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// await waits until the cache is the server's state, and returns how long that took.
func await(
	t *testing.T, server *apisim.Server, informer subject, most time.Duration,
) time.Duration {
	t.Helper()
	began := time.Now()
	for time.Since(began) < most {
		synctest.Wait()
		if maps.Equal(state(informer.List()), serverState(t, server)) {
			return time.Since(began)
		}
		time.Sleep(time.Second)
	}
	return most
}

// state returns the version of each object by name, without objects that have no name, and
// without those of another kind in an informer of any kind: drop-ins and client-go keep them.
func state(list []tidings.Object) map[string]string {
	versions := map[string]string{}
	for _, obj := range list {
		anyKind, ok := obj.(*unstructured.Unstructured)
		if obj.GetName() != "" && (!ok || anyKind.GetKind() == "ConfigMap") {
			versions[obj.GetName()] = obj.GetResourceVersion()
		}
	}
	return versions
}

func serverState(t *testing.T, server *apisim.Server) map[string]string {
	t.Helper()
	list, _, err := server.List(context.Background(), configMaps, "default")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, obj := range list {
		versions[obj.(metav1.Object).GetName()] = obj.(metav1.Object).GetResourceVersion()
	}
	return versions
}

// check compares an outcome with the bounds.
func (o outcome) check(t *testing.T, a attack, kind string, clientGo outcome) {
	most := max(leastRequests, clientGo.requests)
	if a.most > 0 {
		most = a.most
	}
	if o.requests > most {
		t.Errorf("%s: %d requests in %v, client-go %d, want at most %d", kind, o.requests, length,
			clientGo.requests, most)
	}
	if o.heap > heapLimit {
		t.Errorf("%s: %d MiB of heap, client-go %d", kind, o.heap>>20, clientGo.heap>>20)
	}
	if o.healthy && !a.quiet {
		t.Errorf("%s: its health reports no error", kind)
	}
	if len(o.lastError) > messageLimit {
		t.Errorf("%s: the last error of its health has %d bytes", kind, len(o.lastError))
	}
	if a.match.Verb == "watch" && !a.noList && !o.followed {
		t.Errorf("%s: the cache did not follow, though lists were answered", kind)
	}
	if o.recovered > recovery && !a.credible {
		t.Errorf("%s: in step %v after the server was honest again, client-go after %v", kind,
			o.recovered, clientGo.recovered)
	}
}

const head = "| attack | requests in 10 minutes: client-go, most of ours | heap at the peak: client-go, most of ours | in step again: client-go, latest of ours |\n| --- | --- | --- | --- |\n"

// line writes the outcomes of an attack.
func line(table *strings.Builder, a attack, names []string, outcomes map[string]outcome) {
	var worst outcome
	for _, name := range names[1:] {
		o := outcomes[name]
		worst.requests = max(worst.requests, o.requests)
		worst.heap, worst.recovered = max(worst.heap, o.heap), max(worst.recovered, o.recovered)
	}
	of := outcomes[stock]
	fmt.Fprintf(table, "| %s | %d, %d | %d MiB, %d MiB | %v, %v |\n", a.name, of.requests,
		worst.requests,
		of.heap>>20, worst.heap>>20, of.recovered.Round(time.Second), worst.recovered.Round(time.Second))
}

// watchHeap returns the size of the heap, and a function that returns its peak since then. It
// samples in real time, outside of any bubble.
func watchHeap() (before uint64, stop func() (peak uint64)) {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	before = sample[0].Value.Uint64()
	peak, ended := before, make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				metrics.Read(sample)
				peak = max(peak, sample[0].Value.Uint64())
			}
		}
	})
	return before, func() uint64 {
		close(ended)
		sampling.Wait()
		return peak
	}
}
