package contract_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/tidingstest"
)

var printTable = flag.Bool("faults.table", false, "print the table of SECURITY.md")

const (
	// heapLimit bounds the heap under a fault, beside the test's own answers.
	heapLimit = 256 << 20
	// messageLimit bounds the text of an error in Health, in bytes.
	messageLimit = 4 << 10
	// stock is the kind that the table compares with. The bounds of requests are about its own.
	stock = "client-go"
)

// dropInProbe is an informer with client-go's interfaces. It has the methods of a probe that the
// rows with drop-ins use.
type dropInProbe struct {
	probe
	tidingstest.Informer
	measured bool // and not checked: it is client-go's
}

// dropInKinds are the drop-ins, and for the table client-go's informer.
func dropInKinds() map[string]func(w *world) probe {
	open := map[string]func(w *world) probe{}
	add := func(name string, make func(tidingstest.Setting) (tidingstest.Informer, error)) {
		open[name] = func(w *world) probe {
			config := w.server.Config()
			config.QPS = -1
			i, err := make(tidingstest.Setting{Config: config, Namespaces: []string{"default"},
				Index: func(tidings.Object) ([]string, error) { return nil, nil }})
			w.must(err)
			return dropInProbe{Informer: i, measured: name == stock}
		}
	}
	for _, k := range tidingstest.Kinds() {
		if k.DropIn {
			add(k.Name, k.New)
		}
	}
	if *printTable {
		add(stock, func(s tidingstest.Setting) (tidingstest.Informer, error) {
			client, err := kubernetes.NewForConfig(s.Config)
			if err != nil {
				return nil, err
			}
			factory := informers.NewSharedInformerFactory(client, 0)
			return tidingstest.Shared(factory.Core().V1().ConfigMaps().Informer(), s.Index)
		})
	}
	return open
}

// start runs the informer until ctx ends.
func (p dropInProbe) start(ctx context.Context) {
	go p.Run(ctx) //nolint:errcheck // a drop-in returns none
}

// state leaves out objects without a name, and those of another kind in an informer of any kind:
// drop-ins and client-go keep them.
func (p dropInProbe) state() map[string]string {
	state := map[string]string{}
	for _, obj := range p.List() {
		anyKind, ok := obj.(*unstructured.Unstructured)
		if obj.GetName() != "" && (!ok || anyKind.GetKind() == "ConfigMap") {
			state[obj.GetNamespace()+"/"+obj.GetName()] = follow.StateOf(obj)
		}
	}
	return state
}

func (p dropInProbe) informer() informer { return dropInHealth{of: p} }

// dropInHealth has the health of a drop-in.
type dropInHealth struct {
	informer
	of dropInProbe
}

func (h dropInHealth) Health() tidings.Health { return h.of.Informer.Health() }

// cost is what a fault has cost an informer.
type cost struct {
	requests  int
	heap      uint64 // bytes at the peak, above those before
	recovered time.Duration
}

// costTable has the costs of harmful faults, of client-go's informer and the most of ours.
type costTable struct {
	rows        []string
	stock, most map[string]cost
}

// add notes the cost of a row for a kind. Rows without requests are not harmful.
func (c *costTable) add(row, kind string, of cost) {
	if !*printTable || of.requests == 0 {
		return
	}
	if c.most == nil {
		c.stock, c.most = map[string]cost{}, map[string]cost{}
	}
	if kind == stock {
		c.stock[row] = of
		return
	}
	most, known := c.most[row]
	if !known {
		c.rows = append(c.rows, row)
	}
	c.most[row] = cost{max(most.requests, of.requests), max(most.heap, of.heap),
		max(most.recovered, of.recovered)}
}

// print prints the table of SECURITY.md.
func (c *costTable) print() {
	if len(c.rows) == 0 {
		return
	}
	var table strings.Builder
	table.WriteString("| attack | requests in 10 minutes: client-go, most of ours " +
		"| heap at the peak: client-go, most of ours " +
		"| in step again: client-go, latest of ours |\n| --- | --- | --- | --- |\n")
	for _, row := range c.rows {
		theirs, ours := c.stock[row], c.most[row]
		fmt.Fprintf(&table, "| %s | %d, %d | %d MiB, %d MiB | %v, %v |\n", row, theirs.requests,
			ours.requests, theirs.heap>>20, ours.heap>>20, theirs.recovered.Round(time.Second),
			ours.recovered.Round(time.Second))
	}
	fmt.Print(&table)
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
