package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tidings-go/tidings/store"
)

// holding returns a collection with the objects "00", "01" and so on under these keys.
func holding(t *testing.T, objects int) *Collection[string] {
	t.Helper()
	c, err := New(optionsOf())
	if err != nil {
		t.Fatal(err)
	}
	c.WriteByHand(func(s *store.Store[string]) {
		s.Update(func(b *store.Batch[string]) {
			for i := range objects {
				b.Set(fmt.Sprintf("%02d", i), fmt.Sprintf("%02d", i))
			}
		})
	})
	return c
}

func TestKeysUntilTheReaderStops(t *testing.T) {
	var keys []string
	for key := range holding(t, 9).Keys() {
		if keys = append(keys, key); len(keys) == 2 {
			break
		}
	}
	if !slices.Equal(keys, []string{"00", "01"}) {
		t.Errorf("the keys are %q", keys)
	}
}

// TestSample takes objects out of some: rows of neighbours, of which the last may be cut.
func TestSample(t *testing.T) {
	for _, row := range []struct {
		objects, n  int
		rows        []int // their beginnings
		inRow, last int   // objects in each row, and in the last one
	}{
		{0, 5, nil, 0, 0},
		{40, 0, nil, 0, 0},
		{40, 3, []int{0}, 0, 3},
		{5, 100, []int{0}, 0, 5},
		{40, 16, []int{0, 20}, 8, 8},
		{40, 24, []int{0, 13, 26}, 8, 8},
		{40, 40, []int{0, 8, 16, 24, 32}, 8, 8},
	} {
		var want []any
		for i, first := range row.rows {
			n := row.inRow
			if i == len(row.rows)-1 {
				n = row.last
			}
			for at := range n {
				want = append(want, fmt.Sprintf("%02d", first+at))
			}
		}
		if got := holding(t, row.objects).Sample(row.n); !slices.Equal(got, want) {
			t.Errorf("%d of %d objects: %v, want %v", row.n, row.objects, got, want)
		}
	}
}
