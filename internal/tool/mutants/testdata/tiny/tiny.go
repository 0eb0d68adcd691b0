// Package tiny is changed by the tests of mutants.
package tiny

import (
	"errors"
	"sync"
)

var errNegative = errors.New("negative")

// Below reports whether a is less than b.
func Below(a, b int) bool {
	return a < b
}

// Root returns the integer square root of n.
func Root(n int) (int, error) {
	if n < 0 {
		return 0, errNegative
	}
	root := 0
	for (root+1)*(root+1) <= n {
		root++
	}
	return root, nil
}

// Name names a digit.
func Name(digit int) string {
	switch digit {
	case 0:
		return "zero"
	case 1:
		return "one"
	}
	return "many"
}

// Counter counts.
type Counter struct {
	mu sync.Mutex
	n  int
}

// Add adds to the counter.
func (c *Counter) Add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
}

// First returns a value of a channel, or -1 once another is closed.
func First(values <-chan int, done <-chan struct{}) int {
	select {
	case v := <-values:
		return v
	case <-done:
		return -1
	}
}

// Untested is called by no test.
func Untested(a, b bool) bool {
	return a && b
}
