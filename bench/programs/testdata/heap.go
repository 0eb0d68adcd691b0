package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// At SIGUSR1 the program prints the bytes of its live heap.
func init() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			runtime.GC()
			runtime.GC() // frees what finalizers and pools released in the first
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			fmt.Println("programs: live heap", stats.HeapAlloc)
		}
	}()
}
