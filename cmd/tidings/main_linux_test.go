package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

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

// TestKeys presses keys of a demo on a terminal, which has its settings of before in the end.
func TestKeys(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "tidings")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, end := range []string{"q", "\x03"} {
		user, terminal := openTerminal(t)
		settings := func() unix.Termios {
			found, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			return *found
		}
		before := settings()
		demo := exec.CommandContext(t.Context(), binary, "demo", "--for", "0", "--pods", "20", "--churn", "100", "--color", "never")
		demo.Stdin, demo.Stdout, demo.Stderr = terminal, terminal, terminal
		demo.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := demo.Start(); err != nil {
			t.Fatal(err)
		}
		out := bufio.NewReader(user)
		for _, step := range []struct{ await, press string }{
			{"p pauses, / filters, q ends\r\n", "p"},
			{"paused, [1-9]", "p"},
			{"changes? (was|were) not shown\r\n", "/cart"},
			{"/cart▏ · Enter filters", "\r"},
			{"only /cart", end},
			{"match the server", ""},
		} {
			if regexp.MustCompile(step.await).FindReaderIndex(out) == nil {
				t.Fatalf("%q did not come", step.await)
			}
			if _, err := user.WriteString(step.press); err != nil {
				t.Fatal(err)
			}
		}
		if err := demo.Wait(); err != nil {
			t.Error(err)
		}
		if after := settings(); after != before {
			t.Errorf("after %q the terminal has the settings %+v, it had %+v", end, after, before)
		}
	}
}
