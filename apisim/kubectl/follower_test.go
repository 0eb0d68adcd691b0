package kubectl

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"
)

// follower is a command that goes on. The goroutine of its pipe ends with it, and stop
// waits for it.
type follower struct {
	*session
	command *exec.Cmd
	lines   chan string // closed at its end
	failure bytes.Buffer
}

func (s *session) follow(command string) *follower {
	s.Helper()
	f := &follower{session: s, command: s.command(s.Context(), command), lines: make(chan string, 1000)}
	out, err := f.command.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	f.command.Stderr = &f.failure
	if err := f.command.Start(); err != nil {
		s.Fatal(err)
	}
	go f.read(out)
	return f
}

func (f *follower) read(out io.Reader) {
	defer close(f.lines)
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		f.lines <- scanner.Text() + "\n"
	}
}

// next returns the next lines, or fewer if they do not come in time.
func (f *follower) next(count int) string {
	f.Helper()
	timeout := time.NewTimer(commandTimeout)
	defer timeout.Stop()
	var text strings.Builder
	for range count {
		select {
		case line, open := <-f.lines:
			if !open {
				return f.normalise(text.String())
			}
			text.WriteString(line)
		case <-timeout.C:
			return f.normalise(text.String())
		}
	}
	return f.normalise(text.String())
}

// leave forgets the command that goes on and returns it.
func (s *session) leave(why string) *follower {
	s.Helper()
	f := s.following
	if f == nil {
		s.Fatalf("$ %s: no command goes on", why)
	}
	s.following = nil
	return f
}

// stop awaits the last lines of the command that goes on, and ends it.
func (s *session) stop(count int) string {
	s.Helper()
	f := s.leave("stop")
	var text strings.Builder
	text.WriteString(f.next(count))
	if err := f.command.Process.Kill(); err != nil {
		s.Error(err)
	}
	for line := range f.lines {
		text.WriteString(f.normalise(line))
	}
	err := f.command.Wait()
	if _, killed := errors.AsType[*exec.ExitError](err); !killed || f.normalise(f.failure.String()) != "" {
		s.Errorf("%v: %v %s", f.command.Args, err, f.failure.String())
	}
	return text.String()
}

// end waits until the command that goes on ends by itself. One that does not is killed,
// which the status shows.
func (s *session) end() string {
	s.Helper()
	f := s.leave("end")
	timeout := time.AfterFunc(commandTimeout, func() { f.command.Process.Kill() }) //nolint:errcheck // it has ended by itself
	defer timeout.Stop()
	var text strings.Builder
	for line := range f.lines {
		text.WriteString(line)
	}
	return s.outcome(f.command.Wait(), text.String(), f.failure.String())
}
