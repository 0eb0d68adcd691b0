package source

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

// onCores has a test run with so many cores, whatever the machine has.
func onCores(t testing.TB, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestSharesOfTheWork(t *testing.T) {
	onCores(t, 8)
	for _, test := range []struct{ n, size, want int }{
		{1, 10 << 20, 1}, {256, 2*leastShare - 1, 1}, {2, 1 << 20, 2}, {256, 2 * leastShare, 2}, {256, 3 * leastShare, 3}, {256, 1 << 20, maxDecoders}, {0, 0, 1},
	} {
		if got := shares(test.n, test.size); got != test.want {
			t.Errorf("%d objects of %d bytes are divided among %d, want %d", test.n, test.size, got, test.want)
		}
	}
	runtime.GOMAXPROCS(1)
	if got := shares(256, 1<<20); got != 1 {
		t.Errorf("with one core the work is divided among %d", got)
	}
}

// TestInOrderCallsEachOnceAndStopsAtTheFirstError in a bubble, which fails if a goroutine
// is left.
func TestInOrderCallsEachOnceAndStopsAtTheFirstError(t *testing.T) {
	onCores(t, 4)
	failed := errors.New("failed")
	for _, failing := range [][]int{nil, {0}, {99}, {70, 30}, {24, 25, 26}} {
		synctest.Test(t, func(t *testing.T) {
			var calls [100]atomic.Int32
			done, err := inOrder(len(calls), 1<<20, func(i int) error {
				calls[i].Add(1)
				if slices.Contains(failing, i) {
					return fmt.Errorf("%d %w", i, failed)
				}
				return nil
			})
			want := len(calls)
			for _, bad := range failing {
				want = min(want, bad)
			}
			if done != want || errors.Is(err, failed) != (len(failing) > 0) || err != nil && !strings.HasPrefix(err.Error(), fmt.Sprint(want, " ")) {
				t.Errorf("%v fail: done %d, %v", failing, done, err)
			}
			for i := range done {
				if n := calls[i].Load(); n != 1 {
					t.Errorf("%v fail: %d calls for %d", failing, n, i)
				}
			}
		})
	}
}

// TestNextAllocatesWhatTheDecoderDoes: a lone event costs nothing beside its object. Objects of
// earlier batches are not kept.
func TestNextAllocatesWhatTheDecoderDoes(t *testing.T) {
	open := func(body io.Reader) *restStream[*corev1.Pod] {
		stream, err := newRESTStream(NewTyped(nil, pods, newPod, RESTOptions{}),
			request{op: "watch", resource: "pods"}, answerOf(200, protobufType, body), func() {})
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	frame := watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("a", "1")))
	two := open(io.MultiReader(strings.NewReader(frame+frame), strings.NewReader(frame)))
	for want := 2; want > 0; want-- {
		if events, err := two.Next(); len(events) != want || err != nil {
			t.Fatalf("%d events, %v, want %d", len(events), err, want)
		}
	}
	if two.batch[:2][1].Object != nil {
		t.Error("an object of the batch before is kept")
	}
	frame = watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", &corev1.Pod{}))
	stream := open(&repeating{chunk: []byte(frame)})
	if n := testing.AllocsPerRun(100, func() {
		if _, err := stream.Next(); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations for each event, want 1 for the object", n)
	}
}

// repeating is a body that brings the same with each read.
type repeating struct{ chunk []byte }

func (r *repeating) Read(p []byte) (int, error) { return copy(p, r.chunk), nil }

// TestBufferGrowsInABurstAndIsGivenBack reads much at once, and little.
func TestBufferGrowsInABurstAndIsGivenBack(t *testing.T) {
	source, sink := io.Pipe()
	defer sink.Close()
	f := newFrames(source, lengths(), 32<<20)
	read := func(frames int) {
		t.Helper()
		go sink.Write([]byte(strings.Repeat(string(delimited(strings.Repeat("x", 4000))), frames))) //nolint:errcheck // the reader finds out
		for range frames {
			if _, err := f.next(true); err != nil {
				t.Fatal(err)
			}
		}
	}
	read(1)
	if len(f.buf) != initialBuffer {
		t.Errorf("before a burst the buffer has %d bytes, want %d", len(f.buf), initialBuffer)
	}
	read(1000)
	if len(f.buf) != burstBuffer {
		t.Errorf("in a burst the buffer has %d bytes, want %d", len(f.buf), burstBuffer)
	}
	for range shrinkAfter {
		read(1)
	}
	read(1)
	if len(f.buf) != initialBuffer {
		t.Errorf("after the burst the buffer has %d bytes, want %d", len(f.buf), initialBuffer)
	}
	read(1000)
	f.shrink()
	read(1)
	if len(f.buf) != initialBuffer {
		t.Errorf("when it was settled the buffer has %d bytes, want %d", len(f.buf), initialBuffer)
	}
}
