package main

import (
	"context"
	"log"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/examples/clientgo/loop"
)

// scheduler prints the node that it would choose for each pod without one.
type scheduler struct {
	nodes corelisters.NodeLister
	pods  cache.Indexer
	out   *log.Logger
}

// run prints the choices until ctx ends.
func run(ctx context.Context, client kubernetes.Interface, out *log.Logger) error {
	factory := newFactory(client, 0)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	s := &scheduler{nodes: nodes.Lister(), pods: pods.Informer().GetIndexer(), out: out}
	l := loop.New(0, out, s.reconcile)
	l.Filled = s.summarize
	l.Await(nodes.Informer().HasSynced)
	if err := l.Follow(pods.Informer(), l.Enqueue); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown() // the informers end with ctx; wait for them
	l.Run(ctx, 1)
	return nil
}

// summarize prints the sizes of the caches.
func (s *scheduler) summarize() {
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		s.out.Print(err)
	}
	pods := s.pods.List()
	trimmed := 0
	for _, obj := range pods {
		if pod, ok := obj.(*corev1.Pod); ok && pod.ManagedFields == nil {
			trimmed++
		}
	}
	s.out.Printf("%d nodes, %d unfinished pods, %d of them without managed fields", len(nodes), len(pods), trimmed)
}

// reconcile chooses the node with the fewest pods for a pod that has none, the first by name where
// several have as few.
func (s *scheduler) reconcile(_ context.Context, key cache.ObjectName) error {
	obj, exists, err := s.pods.GetByKey(key.String())
	if err != nil {
		return err
	}
	if !exists {
		s.out.Printf("%v takes up no room any more", key)
		return nil
	}
	if pod, ok := obj.(*corev1.Pod); !ok || pod.Spec.NodeName != "" {
		return nil
	}
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	best, fewest := "", 0
	for _, node := range nodes {
		there, err := s.pods.IndexKeys(byNode, node.Name)
		if err != nil {
			return err
		}
		if !node.Spec.Unschedulable && (best == "" || len(there) < fewest) {
			best, fewest = node.Name, len(there)
		}
	}
	if best == "" {
		s.out.Printf("%v fits on no node", key)
		return nil
	}
	s.out.Printf("%v would go to %s, pods there: %d", key, best, fewest)
	return nil
}
