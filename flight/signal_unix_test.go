//go:build unix

package flight_test

import (
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tidings-go/tidings/flight"
)

// lines is a log whose lines are read one by one.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestDumpOnSignal sends a signal to this process.
func TestDumpOnSignal(t *testing.T) {
	log := make(lines, 1)
	recorder, err := flight.New(flight.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stop := recorder.DumpOnSignal(dir, syscall.SIGUSR1)
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	line := <-log
	files, err := filepath.Glob(filepath.Join(dir, "*.zip"))
	if err != nil || len(files) != 1 || !strings.Contains(line, files[0]) {
		t.Fatalf("the directory has %v, %v; logged %s", files, err, line)
	}
	recording, err := flight.Open(files[0])
	if err != nil || !strings.HasPrefix(recording.Reason, "signal: ") {
		t.Errorf("%+v: %v", recording, err)
	}
	stop()
}

// TestDumpOnNoSignal names no signal: none is handled.
func TestDumpOnNoSignal(t *testing.T) {
	log := make(lines, 1)
	recorder, err := flight.New(flight.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGUSR2) // which would end the process
	defer signal.Stop(received)
	dir := t.TempDir()
	stop := recorder.DumpOnSignal(dir)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	<-received
	stop()
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the directory has %v: %v", files, err)
	}
}
