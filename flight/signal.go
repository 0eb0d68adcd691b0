package flight

import (
	"os"
	"os/signal"
	"sync"
)

// DumpOnSignal writes a recording to a new file in a directory when the process receives one of
// the signals, and logs its name, until stop is called. Without it, and without signals, none is
// handled.
func (r *Recorder) DumpOnSignal(dir string, signals ...os.Signal) (stop func()) {
	if len(signals) == 0 { // signal.Notify would take that for all
		return func() {}
	}
	received, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(received, signals...)
	var dumping sync.WaitGroup
	dumping.Go(func() {
		for {
			select {
			case s := <-received:
				r.onSignal(dir, s)
			case <-over:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(received)
		close(over)
		dumping.Wait()
	})
}

func (r *Recorder) onSignal(dir string, s os.Signal) {
	name, err := r.DumpFile(dir, "signal: "+s.String())
	if err != nil {
		r.o.Logger.Error("no flight recording was written", "reason", s.String(), "error", err)
		return
	}
	r.o.Logger.Info("a flight recording was written", "file", name, "reason", s.String())
}
