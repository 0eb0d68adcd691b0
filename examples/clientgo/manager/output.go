package main

import (
	"fmt"
	"io"
	"sync"
)

// output is where all controllers print, one line at a time.
type output struct {
	mu sync.Mutex // guards to
	to io.Writer
}

func (o *output) print(format string, arguments ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(o.to, format+"\n", arguments...)
}
