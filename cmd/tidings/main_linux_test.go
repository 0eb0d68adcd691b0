package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns a pseudo terminal of 80 columns: the side of its user, and that of a process.
func openTerminal(t *testing.T) (user, process *os.File) {
	t.Helper()
	open := func(path string) *os.File {
		file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	user = open("/dev/ptmx")
	fd := int(user.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	return user, open(fmt.Sprintf("/dev/pts/%d", number))
}

// step awaits a text on a terminal, and presses keys then.
type step struct{ await, press string }

// drive runs a command on a terminal, which has its settings of before in the end.
func drive(t *testing.T, command *exec.Cmd, steps ...step) {
	t.Helper()
	user, terminal := openTerminal(t)
	settings := func() unix.Termios {
		found, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return *found
	}
	before := settings()
	command.Stdin, command.Stdout, command.Stderr = terminal, terminal, terminal
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { user.Close() }).Stop() // a text that does not come
	out := bufio.NewReader(user)
	for _, s := range steps {
		if regexp.MustCompile(s.await).FindReaderIndex(out) == nil {
			t.Fatalf("%q did not come", s.await)
		}
		if _, err := user.WriteString(s.press); err != nil {
			t.Fatal(err)
		}
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	if after := settings(); after != before {
		t.Errorf("after %q the terminal has the settings %+v, it had %+v", command.Args, after, before)
	}
}

// TestTerminal ends a demo and the screens of top on a terminal.
func TestTerminal(t *testing.T) {
	binary := build(t)
	drive(t, exec.CommandContext(t.Context(), binary, "demo", "--for", "0", "--pods", "20", "--churn", "100", "--color", "never"),
		step{"RV [1-9]", "\x03"},
		step{"match the server", ""})
	recording := filepath.Join("..", "..", "flight", "testdata", "version-1.zip")
	replay := exec.CommandContext(t.Context(), binary, "replay", recording, "--page", "127.0.0.1:0")
	printed, err := replay.StdoutPipe()
	if err == nil {
		err = replay.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		replay.Process.Kill() //nolint:errcheck // it may have ended
		replay.Wait()         //nolint:errcheck // as above
	})
	page := regexp.MustCompile(`on a page: (\S+)`)
	lines, address := bufio.NewScanner(printed), ""
	for address == "" && lines.Scan() {
		if match := page.FindStringSubmatch(lines.Text()); match != nil {
			address = match[1]
		}
	}
	go io.Copy(io.Discard, printed) //nolint:errcheck // the replay ends with the test
	drive(t, exec.CommandContext(t.Context(), binary, "top", address, "--color", "never"),
		step{`\[1\] problems`, "2"},
		step{"OBJECTS", "q"})
}
