package work

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// reads is goroutines that read as fast as they can, alone and beside updates that come
// as fast as they are taken.
type reads struct{}

func (reads) Name() string { return "reads" }

// nodeIndex is the index that lookups ask, by the node of a pod.
const nodeIndex = "node"

// selectedLabel is the label that selectors name, which a hundredth of the pods share.
const selectedLabel = "track"

// kindsOfReads are the reads, each with the name of its case.
var kindsOfReads = []string{"get", "namespace", "labels", "owner", "index", "all"}

func (reads) Cases(s Size) []Case {
	var cases []Case
	for _, kind := range kindsOfReads {
		cases = append(cases, Case{
			Work: "reads", Read: kind, Seed: seed, Objects: pick(s, 2_000, 3_000, 50_000),
			Readers:  pick(s, []int{1, 8}, []int{1, 8}, []int{1, 2, 8, 64}),
			Duration: pick(s, 5*time.Millisecond, 50*time.Millisecond, 500*time.Millisecond),
		})
	}
	return cases
}

// read is one kind of read: f does read number i and returns how many objects it found.
type read struct {
	f    func(i int) int
	want int
}

// readOf returns the reads of a kind, and what each has to find.
func readOf(kind string, informer stack.Informer, pods []*corev1.Pod) (read, error) {
	pod := pods[len(pods)/2]
	owner := string(pod.OwnerReferences[0].UID)
	count := func(is func(*corev1.Pod) bool) int {
		n := 0
		for _, pod := range pods {
			if is(pod) {
				n++
			}
		}
		return n
	}
	switch kind {
	case "get":
		keys := make([]string, len(pods))
		for i, pod := range pods {
			keys[i] = key(pod)
		}
		return read{func(i int) int {
			if _, ok := informer.Get(keys[i*7919%len(keys)]); ok {
				return 1
			}
			return 0
		}, 1}, nil
	case "namespace":
		return read{func(int) int { return informer.Namespace(pod.Namespace) }, count(func(p *corev1.Pod) bool { return p.Namespace == pod.Namespace })}, nil
	case "labels":
		selector := labels.SelectorFromSet(labels.Set{selectedLabel: pod.Labels[selectedLabel]})
		return read{func(int) int { return informer.Select(selector) }, count(func(p *corev1.Pod) bool { return p.Labels[selectedLabel] == pod.Labels[selectedLabel] })}, nil
	case "owner":
		return read{func(int) int { return informer.Owned(pod.Namespace, owner) }, objects.Replicas}, nil
	case "index":
		return read{func(int) int { return informer.Lookup(nodeIndex, pod.Spec.NodeName) }, count(func(p *corev1.Pod) bool { return p.Spec.NodeName == pod.Spec.NodeName })}, nil
	case "all":
		return read{func(int) int { return informer.All() }, len(pods)}, nil
	}
	return read{}, fmt.Errorf("reads: there is no read %q: use one of %v", kind, kindsOfReads)
}

func (reads) Run(ctx context.Context, r Run) (m Metrics, err error) {
	pods := feed.Pods(r.Seed, r.Objects)
	f := feed.New(pods)
	write := newWriter(f, r.Objects)
	informer, err := fromMemory(ctx, r.Stack, f, stack.Options{
		Indexes: map[string]func(metav1.Object) []string{nodeIndex: nodeOf, "probe": write.stamp},
		Labels:  []string{selectedLabel}, Owners: true,
	}, write.handler())
	if err != nil {
		return nil, err
	}
	what, err := readOf(r.Read, informer, pods)
	if err != nil {
		return nil, err
	}
	for i, readers := range r.Readers {
		suffix := ", " + plural(readers, "reader")
		n, usage, err := readFor(r.Duration, readers, what)
		if err != nil {
			return nil, err
		}
		m.rate("reads a second"+suffix, n, usage.Wall)
		if i == 0 {
			// Rounded, for a few are the timer's.
			m.add("allocations per object read", "", math.Round(float64(usage.Allocations)/float64(n*what.want)*1_000)/1_000)
			m.add("allocated per read", "B", math.Round(float64(usage.Bytes)/float64(n)))
		}
	}
	for _, readers := range r.Readers {
		suffix := " beside a writer, " + plural(readers, "reader")
		written := write.begin(ctx)
		n, usage, err := readFor(r.Duration, readers, what)
		if failed := write.end(); failed != nil {
			return nil, failed
		}
		if err != nil {
			return nil, err
		}
		m.rate("reads a second"+suffix, n, usage.Wall)
		m.rate("updates a second"+suffix, written(), usage.Wall)
		stale := write.staleness()
		m.seconds("staleness, p50"+suffix, percentile(stale, 50), 1)
		m.seconds("staleness, p99"+suffix, percentile(stale, 99), 1)
	}
	return m, informer.stop()
}

// nodeOf is the index function of nodeIndex.
func nodeOf(o metav1.Object) []string {
	if pod, ok := o.(*corev1.Pod); ok {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

// readFor reads with so many goroutines for so long, and at least once with each. It
// returns how many reads there were.
func readFor(duration time.Duration, readers int, what read) (n int, usage measure.Usage, err error) {
	var over atomic.Bool
	timer := time.AfterFunc(duration, func() { over.Store(true) })
	defer timer.Stop()
	counts := make([]int, readers)
	wrong := make([]int, readers)
	usage, err = measure.Of(func() error {
		var all sync.WaitGroup
		for reader := range readers {
			all.Go(func() {
				n, bad := 0, 0
				for ; n == 0 || !over.Load(); n++ {
					if what.f(reader+n) != what.want {
						bad++
					}
				}
				counts[reader], wrong[reader] = n, bad
			})
		}
		all.Wait()
		return nil
	})
	bad := 0
	for i := range counts {
		n, bad = n+counts[i], bad+wrong[i]
	}
	if bad > 0 {
		return 0, usage, fmt.Errorf("reads: %d of %d did not find the %d objects that there are", bad, n, what.want)
	}
	return n, usage, err
}
