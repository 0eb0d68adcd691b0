package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/informers"
)

// scheduler chooses nodes for pods.
type scheduler struct {
	nodes corelisters.NodeLister
	pods  cache.Indexer

	mu      sync.Mutex        // guards the rest
	chosen  map[string]string // node by the key of a pod that waits for it
	follows bool              // whether changes are printed
	out     io.Writer
}

// run prints the node of each pod without one, and continues with later pods unless once is
// set.
func run(ctx context.Context, client kubernetes.Interface, once bool, out io.Writer) error {
	factory := newFactory(client, 0)
	s, synced, err := newScheduler(factory, out)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	factory.StartWithContext(ctx)
	defer factory.Shutdown() // waits until the informers have ended, so stop comes first
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("stopped before the caches were filled")
	}
	if err := s.begin(); err != nil || once {
		return err
	}
	<-ctx.Done()
	return nil
}

// newScheduler returns a scheduler with the informers of a factory, and adds its handlers.
func newScheduler(factory informers.SharedInformerFactory, out io.Writer) (*scheduler, []cache.InformerSynced, error) {
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	s := &scheduler{nodes: nodes.Lister(), pods: pods.Informer().GetIndexer(), chosen: map[string]string{}, out: out}
	ofPods, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.place,
		UpdateFunc: func(_, changed any) { s.place(changed) },
		DeleteFunc: s.forget,
	})
	if err != nil {
		return nil, nil, err
	}
	return s, []cache.InformerSynced{nodes.Informer().HasSynced, ofPods.HasSynced}, nil
}

// begin prints the sizes of the caches and places the pods that wait, in order.
func (s *scheduler) begin() error {
	s.mu.Lock() // a pod that comes now is in the cache already, or the handler receives it later
	defer s.mu.Unlock()
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	pods := s.pods.List()
	trimmed := 0
	for _, obj := range pods {
		if pod, ok := obj.(*corev1.Pod); ok && pod.ManagedFields == nil {
			trimmed++
		}
	}
	waiting, err := s.pods.ByIndex(byNode, "")
	if err != nil {
		return err
	}
	keys := make([]string, 0, len(waiting))
	for _, obj := range waiting {
		keys = append(keys, cache.MetaObjectToName(obj.(*corev1.Pod)).String())
	}
	slices.Sort(keys)
	fmt.Fprintf(s.out, "%d nodes, %d unfinished pods, %d of them without managed fields\n", len(nodes), len(pods), trimmed)
	s.follows = true
	for _, key := range keys {
		s.chooseLocked(key)
	}
	return nil
}

// place handles every pod that came or changed.
func (s *scheduler) place(obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	key := cache.MetaObjectToName(pod).String()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.follows {
		return // begin sees it in the cache
	}
	if pod.Spec.NodeName == "" {
		s.chooseLocked(key)
	} else if _, chosen := s.chosen[key]; chosen {
		delete(s.chosen, key)
		fmt.Fprintf(s.out, "%s is on %s\n", key, pod.Spec.NodeName)
	}
}

// forget handles every pod that was deleted or has finished.
func (s *scheduler) forget(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || !s.follows {
		return // without a key it was never chosen for
	}
	delete(s.chosen, key)
	fmt.Fprintf(s.out, "%s takes up no room any more\n", key)
}

// chooseLocked chooses the node with the fewest pods for a pod that has none yet, the
// first by name where several have as few.
func (s *scheduler) chooseLocked(key string) {
	if s.chosen[key] != "" {
		return
	}
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		fmt.Fprintf(s.out, "%s: %v\n", key, err)
		return
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	best, fewest := "", 0
	for _, node := range nodes {
		if node.Spec.Unschedulable {
			continue
		}
		load, err := s.loadLocked(node.Name)
		if err != nil {
			fmt.Fprintf(s.out, "%s: %v\n", key, err)
			return
		}
		if best == "" || load < fewest {
			best, fewest = node.Name, load
		}
	}
	if best == "" {
		fmt.Fprintf(s.out, "%s fits on no node\n", key)
		return
	}
	s.chosen[key] = best
	fmt.Fprintf(s.out, "%s would go to %s, pods there: %d\n", key, best, fewest)
}

// loadLocked counts the pods of a node, and those for which it was chosen.
func (s *scheduler) loadLocked(node string) (int, error) {
	keys, err := s.pods.IndexKeys(byNode, node)
	if err != nil {
		return 0, err
	}
	load := len(keys)
	for _, chosen := range s.chosen {
		if chosen == node {
			load++
		}
	}
	return load, nil
}
