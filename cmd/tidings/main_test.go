package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// process is a running command with its own directory for temporary files.
type process struct {
	*exec.Cmd
	out       io.ReadCloser
	lines     *bufio.Scanner
	err       bytes.Buffer
	temporary string
}

// start starts the command and waits until it has printed the path of its kubeconfig.
func start(t *testing.T, binary string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), binary, args...), temporary: t.TempDir()}
	p.Env = append(os.Environ(), "TMPDIR="+p.temporary)
	p.Stderr = &p.err
	var err error
	if p.out, err = p.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(p.out)
	for p.lines.Scan() {
		if strings.Contains(p.lines.Text(), "export KUBECONFIG="+p.temporary) {
			return p
		}
	}
	t.Fatalf("it ends without a kubeconfig: %v, %s", p.Wait(), p.err.String())
	return nil
}

// tidy expects an empty directory and an empty error stream.
func (p *process) tidy(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(p.temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if p.err.Len() > 0 {
		t.Errorf("the error stream has %s", p.err.String())
	}
}

// TestEnds ends the command in ways that need a process.
func TestEnds(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "tidings")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("the reader goes away", func(t *testing.T) { readerGoesAway(t, binary) })
	t.Run("the terminal is closed", func(t *testing.T) { terminalIsClosed(t, binary) })
}

// readerGoesAway is `tidings demo | head`: the command ends by itself instead of being killed.
func readerGoesAway(t *testing.T, binary string) {
	p := start(t, binary, "demo", "--for", "0", "--pods", "20", "--churn", "100")
	if err := p.out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); p.ProcessState.ExitCode() != 1 {
		t.Errorf("it ends with %v, want the code 1", err)
	}
	p.tidy(t)
}

// terminalIsClosed expects the command to clean up after the signal of a closed terminal.
func terminalIsClosed(t *testing.T, binary string) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP) // a process inherits it if it is ignored
	defer signal.Stop(caught)
	p := start(t, binary, "serve")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, p.out); err != nil {
		t.Error(err)
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	p.tidy(t)
}
