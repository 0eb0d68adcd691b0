package tiny

import (
	"testing"
	"testing/synctest"
)

func TestBelow(t *testing.T) {
	if !Below(1, 2) || Below(2, 1) {
		t.Error("1 and 2 are in the wrong order")
	}
}

func TestRoot(t *testing.T) {
	for n, want := range []int{0, 1, 1, 1, 2, 2, 2, 2, 2, 3} {
		if got, err := Root(n); got != want || err != nil {
			t.Errorf("Root(%d) = %d, %v", n, got, err)
		}
	}
	if _, err := Root(-1); err == nil {
		t.Error("no error for -1")
	}
}

func TestName(t *testing.T) {
	if Name(0) != "zero" || Name(7) != "many" {
		t.Error("wrong names")
	}
}

func TestCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Counter
		c.Add(2)
		if c.Add(3); c.n != 5 {
			t.Errorf("got %d, want 5", c.n)
		}
	})
}

func TestFirst(t *testing.T) {
	values := make(chan int, 1)
	values <- 7
	if got := First(values, nil); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}

func TestFails(t *testing.T) {
	t.Error("without a mutant, too")
}
