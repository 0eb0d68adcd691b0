package apiserver

import (
	"io"
	"sync"
)

// outputLimit is the number of bytes of the output of a server that are kept.
const outputLimit = 16 << 10

// output keeps the last bytes of the output of a server.
type output struct {
	mu   sync.Mutex // guards end
	end  []byte
	next io.Writer // receives all bytes; may be nil
}

// Write keeps the end of p, and writes p to next.
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

// String returns the kept bytes.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.end)
}
