package store_test

import (
	"fmt"

	"github.com/tidings-go/tidings/store"
)

func ExampleStore() {
	type fruit struct{ colour string }
	s, err := store.New(store.Options[fruit]{Indexes: map[string]store.IndexFunc[fruit]{
		"colour": func(f fruit) ([]string, error) { return []string{f.colour}, nil },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Update(func(b *store.Batch[fruit]) {
		b.Set("garden/apple", fruit{"red"})
		b.Set("garden/pear", fruit{"green"})
		b.Set("shop/cherry", fruit{"red"})
		b.SetVersion("1")
	})
	before := s.Snapshot()
	s.Update(func(b *store.Batch[fruit]) {
		b.Delete("shop/cherry")
		b.SetVersion("2")
	})

	for key := range s.Snapshot().Prefix("garden/") {
		fmt.Println("in the garden:", key)
	}
	for _, snapshot := range []store.Snapshot[fruit]{before, s.Snapshot()} {
		colours, err := snapshot.Index("colour")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("red in state", snapshot.Version()+":", colours.Len("red"))
	}
	// Output:
	// in the garden: garden/apple
	// in the garden: garden/pear
	// red in state 1: 2
	// red in state 2: 1
}
