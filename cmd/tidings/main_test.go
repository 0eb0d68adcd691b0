package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
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

// build returns the path of the command.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tidings")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// TestEnds ends the command in ways that need a process.
func TestEnds(t *testing.T) {
	binary := build(t)
	t.Run("the reader goes away", func(t *testing.T) { readerGoesAway(t, binary) })
	t.Run("the terminal is closed", func(t *testing.T) { terminalIsClosed(t, binary) })
	t.Run("it is a plugin", func(t *testing.T) { pluginHelps(t, binary) })
	t.Run("a replica of a demo is killed", func(t *testing.T) { replicaIsKilled(t, binary) })
	t.Run("a command of serve ends", func(t *testing.T) { commandEnds(t, binary) })
	t.Run("a command of serve gets a signal", func(t *testing.T) { commandGetsSignal(t, binary) })
}

// readerGoesAway is `tidings demo | head`: the command ends by itself instead of being killed.
func readerGoesAway(t *testing.T, binary string) {
	p := start(t, binary, "demo", "--for", "0", "--pods", "20", "--churn", "100")
	if err := p.out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	p.tidy(t)
}

// expect reads lines until one matches, and returns its submatches.
func (p *process) expect(t *testing.T, pattern string) []string {
	t.Helper()
	for p.lines.Scan() {
		if match := regexp.MustCompile(pattern).FindStringSubmatch(p.lines.Text()); match != nil {
			return match
		}
	}
	t.Fatalf("no line matches %q: %s", pattern, p.err.String())
	return nil
}

// replicaIsKilled expects the slots of a replica to move to the others, and these to end with the
// demo.
func replicaIsKilled(t *testing.T, binary string) {
	p := start(t, binary, "demo", "--replicas", "3", "--pods", "60", "--churn", "20")
	pid, err := strconv.Atoi(p.expect(t, `kill -9 (\d+)$`)[1])
	if err != nil {
		t.Fatal(err)
	}
	p.expect(t, `a \d+ slots, .* \| b \d+ slots, .* \| c \d+ slots, .* \| 256 of 256 slots covered$`)
	killed, err := os.FindProcess(pid)
	if err == nil {
		err = killed.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.expect(t, `replica a has ended \(signal: killed\)`)
	p.expect(t, `all slots are covered again`)
	p.expect(t, ` b (\d+) slots, .* \| c (\d+) slots, .* 256 of 256 slots covered$`)
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.expect(t, `replica b is asked to end`)
	p.expect(t, `replica c is asked to end`)
	p.expect(t, `comparison .*match the server`)
	if err := p.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
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

// pluginHelps runs the command by the name that kubectl wants.
func pluginHelps(t *testing.T, binary string) {
	plugin := filepath.Join(t.TempDir(), "kubectl-tidings")
	if err := os.Symlink(binary, plugin); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), plugin, "watch", "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "  kubectl tidings watch TYPE") {
		t.Errorf("%v: %s", err, out)
	}
}

// commandEnds runs commands with a server of their own.
func commandEnds(t *testing.T, binary string) {
	notExecutable := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shell := func(script string) []string { return []string{"sh", "-c", script} }
	for _, c := range []struct {
		command  []string
		code     int
		out, err string
	}{
		{shell(`test -s "$KUBECONFIG"; cat; echo problem >&2; exit 3`), 3, "input", "problem\n"},
		{shell(`echo "$1"`), 0, "\n", ""},
		{[]string{"sh", "-c", `echo "$@"`, "sh", "--load", "x"}, 0, "--load x\n", ""},
		{[]string{binary, "watch", "ns/default", "-A", "-o", "name", "-q", "--until", "create"}, 0, "namespace/default\n", ""},
		{shell(`kill -TERM $$`), 128 + 15, "", ""},
		{shell(`yes | head -n 1`), 0, "y\n", ""},
		{[]string{"no-such-command"}, 127, "", "tidings: the command \"no-such-command\" was not found: name a program in PATH, or its path\n"},
		{[]string{notExecutable}, 126, "", "tidings: the command \"" + notExecutable + "\" cannot be executed: permission denied\n"},
	} {
		p := process{Cmd: exec.CommandContext(t.Context(), binary, append([]string{"serve", "--"}, c.command...)...), temporary: t.TempDir()}
		var out bytes.Buffer
		p.Env = append(os.Environ(), "TMPDIR="+p.temporary, "HOME="+t.TempDir())
		p.Stdin, p.Stdout, p.Stderr = strings.NewReader("input"), &out, &p.err
		err := p.Run()
		if p.ProcessState.ExitCode() != c.code || out.String() != c.out || p.err.String() != c.err {
			t.Errorf("%q: %v, want the code %d; it prints %q and %q", c.command, err, c.code, out.String(), p.err.String())
		}
		p.err.Reset()
		p.tidy(t)
	}
}

// commandGetsSignal ends the server, which passes the signal on and waits for its command.
func commandGetsSignal(t *testing.T, binary string) {
	p := process{Cmd: exec.CommandContext(t.Context(), binary, "serve", "--", binary, "watch", "ns"), temporary: t.TempDir()}
	p.Env = append(os.Environ(), "TMPDIR="+p.temporary, "HOME="+t.TempDir())
	notes, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	watched := false
	for lines := bufio.NewScanner(notes); lines.Scan(); {
		if strings.Contains(lines.Text(), "now watching") {
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		watched = watched || strings.Contains(lines.Text(), "watched for")
	}
	if err := p.Wait(); err != nil || !watched {
		t.Errorf("it ends with %v; the command has ended by itself: %v", err, watched)
	}
	p.tidy(t)
}
