package store_test

import (
	"errors"
	"fmt"
	"maps"

	"github.com/tidings-go/tidings/store"
)

type pod struct{ node, phase string }

func byNode(p pod) ([]string, error) {
	if p.node == "" {
		return nil, nil // not scheduled: no entry
	}
	return []string{p.node}, nil
}

func ExampleStore() {
	pods, err := store.New(store.Options[pod]{Indexes: map[any]store.IndexFunc[pod]{"node": byNode}})
	if err != nil {
		panic(err)
	}
	pods.Update(func(b *store.Batch[pod]) {
		b.Set("shop/web-1", pod{"n1", "Running"})
		b.Set("shop/web-2", pod{"n2", "Running"})
		b.Set("shop-eu/web-1", pod{"n1", "Pending"})
		b.SetVersion("17")
	})

	s := pods.Snapshot()
	for key, p := range s.Prefix("shop/") {
		fmt.Println(key, p.phase)
	}
	nodes, _ := s.Index("node")
	for key := range nodes.Lookup("n1") {
		fmt.Println("on n1:", key)
	}
	// Output:
	// shop/web-1 Running
	// shop/web-2 Running
	// on n1: shop-eu/web-1
	// on n1: shop/web-1
}

func ExampleStore_Replace() {
	pods, err := store.New(store.Options[pod]{})
	if err != nil {
		panic(err)
	}
	pods.Replace("17", maps.All(map[string]pod{"shop/web-1": {phase: "Running"}}))
	before := pods.Snapshot()
	pods.Replace("23", maps.All(map[string]pod{"shop/web-2": {phase: "Pending"}}))

	for _, s := range []store.Snapshot[pod]{before, pods.Snapshot()} {
		for key, p := range s.All() {
			fmt.Println(s.Version(), key, p.phase)
		}
	}
	// Output:
	// 17 shop/web-1 Running
	// 23 shop/web-2 Pending
}

func ExampleStore_AddIndex() {
	pods, err := store.New(store.Options[pod]{OnIndexError: func(err store.IndexError) { fmt.Println(err) }})
	if err != nil {
		panic(err)
	}
	pods.Update(func(b *store.Batch[pod]) {
		b.Set("shop/web-1", pod{phase: "Running"})
		b.Set("shop/web-2", pod{})
	})
	err = pods.AddIndex("phase", func(p pod) ([]string, error) {
		if p.phase == "" {
			return nil, errors.New("no phase")
		}
		return []string{p.phase}, nil
	})
	fmt.Println(err)
	phases, ok := pods.Snapshot().Index("phase")
	fmt.Println(phases.Len("Running"), ok)
	// Output:
	// index "phase" has no entry for object "shop/web-2": its function failed: no phase
	// <nil>
	// 1 true
}
