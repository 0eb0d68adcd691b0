package source

import (
	"runtime"
	"sync"
)

const (
	// maxDecoders bounds the goroutines that decode one page of a list or one batch of a watch.
	maxDecoders = 4
	// leastShare is the least number of bytes for one of them: to decode them takes about 50 µs,
	// many times the start of a goroutine and the wait for it.
	leastShare = 32 << 10
)

// shares returns among how many goroutines n objects of size bytes in all are divided.
func shares(n, size int) int {
	if size < 2*leastShare || n < 2 {
		return 1
	}
	return min(n, size/leastShare, maxDecoders, runtime.GOMAXPROCS(0))
}

// inOrder calls do for the numbers from 0 to n-1, which stand for size bytes, on as many
// goroutines as these are worth. Each of them has a stretch of the numbers, goes through it
// in order and stops at an error. It returns the lowest number whose call failed and that
// error, or n: the calls for all lower numbers have succeeded. All goroutines have ended
// then, so that their input does not have to be copied for them.
func inOrder(n, size int, do func(i int) error) (done int, err error) {
	among := shares(n, size)
	if among == 1 {
		return stretch(0, n, do)
	}
	type end struct {
		at  int
		err error
	}
	ends := make([]end, among)
	var others sync.WaitGroup
	for part := 1; part < among; part++ {
		others.Go(func() {
			ends[part].at, ends[part].err = stretch(part*n/among, (part+1)*n/among, do)
		})
	}
	ends[0].at, ends[0].err = stretch(0, n/among, do)
	others.Wait()
	for _, e := range ends {
		if e.err != nil {
			return e.at, e.err
		}
	}
	return n, nil
}

func stretch(begin, end int, do func(i int) error) (done int, err error) {
	for i := begin; i < end; i++ {
		if err := do(i); err != nil {
			return i, err
		}
	}
	return end, nil
}
