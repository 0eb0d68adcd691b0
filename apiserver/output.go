package apiserver

import (
	"sync"
)

// outputLimit is how many bytes of what a server prints are kept.
const outputLimit = 16 << 10

// output keeps the end of what is written to it.
type output struct {
	mu   sync.Mutex // guards end
	end  []byte
	next interface{ Write([]byte) (int, error) } // nil, or who gets it too
}

// Write keeps the end of p, and hands p on.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.end = append(o.end, p...)
	if over := len(o.end) - outputLimit; over > 0 {
		o.end = append(o.end[:0], o.end[over:]...)
	}
	o.mu.Unlock()
	if o.next != nil {
		return o.next.Write(p)
	}
	return len(p), nil
}

// String returns what is kept.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.end)
}
