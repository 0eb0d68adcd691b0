package delta_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
)

// shelf is a cache of strings, "name version", for the examples.
type shelf map[string]string

func (s shelf) Get(key string) (string, bool) { v, ok := s[key]; return v, ok }

func (s shelf) Prefix(prefix string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, key := range slices.Sorted(maps.Keys(s)) {
			if strings.HasPrefix(key, prefix) && !yield(key, s[key]) {
				return
			}
		}
	}
}

// apply prints a batch and brings the shelf up to date.
func (s shelf) apply(b delta.Batch[string]) {
	for _, d := range b.Changes {
		switch d.Type {
		case change.Added:
			fmt.Printf("added %s: %s\n", d.Key, d.New)
			s[d.Key] = d.New
		case change.Updated:
			fmt.Printf("updated %s: %s, was %s\n", d.Key, d.New, d.Old)
			s[d.Key] = d.New
		case change.Deleted:
			fmt.Printf("deleted %s: %s, tombstone %v\n", d.Key, d.New, d.Tombstone)
			delete(s, d.Key)
		}
	}
	for _, token := range b.Resync {
		fmt.Printf("resync of %v at %d objects\n", token, len(s))
	}
}

// versionOf finds the version in an object's text.
func versionOf(object string) (version, uid string) {
	_, version, _ = strings.Cut(object, " v")
	return version, ""
}

func newShelfQueue() (shelf, *delta.Queue[string]) {
	s := shelf{}
	q, err := delta.New(delta.Options[string]{
		Known:    func() delta.Known[string] { return s },
		Describe: versionOf,
		Compare:  delta.CompareDecimal,
	})
	if err != nil {
		panic(err)
	}
	return s, q
}

func told(t delta.EventType, key, version string) delta.Event[string] {
	return delta.Event[string]{Type: t, Item: delta.Item[string]{Key: key, Version: version, Object: key + " v" + version}}
}

// Changes are pushed by a producer; one consumer pops them, resolved against what it holds.
func ExampleQueue() {
	s, q := newShelfQueue()
	defer q.Close()
	ctx := context.Background()

	if err := q.Push(ctx, "", "4", []delta.Event[string]{
		told(delta.Set, "tea", "1"),
		told(delta.Set, "jam", "2"),
		told(delta.Set, "tea", "3"),
		told(delta.Delete, "jam", "4"),
		told(delta.Set, "tea", "1"), // sent again: stale
	}); err != nil {
		fmt.Println(err)
	}
	if err := q.Pop(ctx, s.apply); err != nil {
		fmt.Println(err)
	}
	fmt.Println("stale", q.Stale())
	// Output:
	// added tea: tea v1
	// added jam: jam v2
	// updated tea: tea v3, was tea v1
	// deleted jam: jam v4, tombstone false
	// stale 1
}

// A Replace is a complete list. It becomes one batch: deletes first, and nothing of what is
// unchanged.
func ExampleQueue_Replace() {
	s, q := newShelfQueue()
	defer q.Close()
	ctx := context.Background()
	s["tea"], s["jam"] = "tea v1", "jam v2"

	if err := q.Replace(ctx, "", "9", []delta.Item[string]{
		{Key: "tea", Version: "7", Object: "tea v7"},
		{Key: "rye", Version: "8", Object: "rye v8"},
	}, delta.ReplaceOptions{}); err != nil {
		fmt.Println(err)
	}
	if err := q.Pop(ctx, s.apply); err != nil {
		fmt.Println(err)
	}

	err := q.Replace(ctx, "", "5", nil, delta.ReplaceOptions{}) // a server that lags
	fmt.Println(err)
	// Output:
	// deleted jam: jam v2, tombstone true
	// added rye: rye v8
	// updated tea: tea v7, was tea v1
	// delta: the list is older than the state already reached: the list of partition "" is of version 5, the partition has reached version 9; list again, or set NewHistory if the server's versions went back
}

// A resync token comes out where it was put in: after everything that was pushed before it.
func ExampleQueue_Resync() {
	s, q := newShelfQueue()
	defer q.Close()
	ctx := context.Background()
	_ = q.Push(ctx, "", "1", []delta.Event[string]{told(delta.Set, "tea", "1")})
	_ = q.Resync("the counter")
	_ = q.Push(ctx, "", "2", []delta.Event[string]{told(delta.Set, "jam", "2")})
	for range 2 {
		if err := q.Pop(ctx, s.apply); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// added tea: tea v1
	// resync of the counter at 1 objects
	// added jam: jam v2
}

func ExampleCompareDecimal() {
	fmt.Println(delta.CompareDecimal("9", "10"))
	fmt.Println(delta.CompareDecimal("18446744073709551616", "18446744073709551615"))
	fmt.Println(delta.CompareDecimal("", "10"))
	// Output:
	// -1 true
	// 1 true
	// 0 false
}
