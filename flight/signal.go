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
	received := make(chan os.Signal, 1)
	signal.Notify(received, signals...)
	var dumping sync.WaitGroup
	dumping.Go(func() {
		for s := range received {
			r.onSignal(dir, s)
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(received) // after which none is sent
		close(received)
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
