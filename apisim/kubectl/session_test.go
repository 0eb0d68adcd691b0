package kubectl

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the sessions anew, with what kubectl prints now")

// commandTimeout bounds the time of a command; each takes a fraction of a second.
const commandTimeout = time.Minute

// TestSessions replays each session and compares the output of kubectl.
func TestSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/sessions/*.session")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sessions in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".session"), func(t *testing.T) {
			t.Parallel()
			replay(newSession(t), file)
		})
	}
}

// TestServe replays a session with "tidings serve" as the server.
func TestServe(t *testing.T) {
	t.Parallel()
	replay(newServeSession(t), "testdata/sessions/fields.session")
}

// TestDemo replays a session with "tidings demo" as the server.
func TestDemo(t *testing.T) {
	t.Parallel()
	replay(newDemoSession(t), "testdata/demo.session")
}

// TestUsers replays a session of a user with few rights.
func TestUsers(t *testing.T) {
	t.Parallel()
	replay(newSessionOf(t, users), "testdata/users.session")
}

// unclear matches output that a session would take for a command or a comment.
var unclear = regexp.MustCompile(`(?m)^(#|\$ )`)

func replay(t *session, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, step := range parse(string(text)) {
		output := t.run(step)
		if unclear.MatchString(output) {
			t.Errorf("%s: $ %s prints what a session reads as a comment or a command:\n%s", file, step.command, output)
		}
		fmt.Fprint(&got, step.head, output)
	}
	if t.following != nil {
		t.Errorf("%s: a command goes on at the end: $ stop or $ end is missing", file)
	}
	if got.String() == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s differs (go test -update writes it anew):\n%s", file, firstDifference(got.String(), string(text)))
}

// firstDifference shows where two texts part.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	from := max(0, i-5)
	part := func(lines []string) string {
		return strings.Join(lines[min(from, len(lines)):min(i+10, len(lines))], "\n")
	}
	return fmt.Sprintf("--- got, line %d differs\n%s\n--- want\n%s", i+1, part(g), part(w))
}

// step is a command of a session.
type step struct {
	head    string // comments and the line of the command, as they are written
	command string // empty for comments at the end
	output  string // expected
}

func parse(text string) []step {
	var steps []step
	var last step
	for line := range strings.Lines(text) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch isComment := strings.HasPrefix(line, "#"); {
		case (isCommand || isComment) && last.command != "":
			steps = append(steps, last)
			last = step{head: line}
		case isCommand || isComment:
			last.head += line
		default:
			last.output += line
		}
		if isCommand {
			last.command = strings.TrimSpace(command)
		}
	}
	return append(steps, last)
}

// session is a server and the home directory of kubectl.
type session struct {
	*testing.T
	home       string
	kubeconfig string // the path
	normalise  func(string) string
	following  *follower // the command that goes on, if there is one
}

// run does a step and returns its output.
func (s *session) run(step step) string {
	s.Helper()
	switch command, goesOn := strings.CutSuffix(step.command, " &"); {
	case command == "":
		return ""
	case command == "stop":
		return s.stop(strings.Count(step.output, "\n"))
	case command == "end":
		return s.end()
	case goesOn:
		s.following = s.follow(command)
		return s.following.next(strings.Count(step.output, "\n"))
	default:
		return s.once(command)
	}
}

func (s *session) once(command string) string {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), commandTimeout)
	defer stop()
	c := s.command(ctx, command)
	var out, failure bytes.Buffer
	c.Stdout, c.Stderr = &out, &failure
	err := c.Run()
	if ctx.Err() != nil {
		s.Fatalf("$ %s: still running after %v; it has printed\n%s%s", command, commandTimeout, out.String(), failure.String())
	}
	return s.outcome(err, out.String(), failure.String())
}

// outcome returns the output and the exit status of a command for the session.
func (s *session) outcome(err error, out, failure string) string {
	s.Helper()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		s.Fatal(err)
	}
	text := lines(out) + lines(failure)
	if failed {
		text += fmt.Sprintf("[exit %d]\n", exit.ExitCode())
	}
	return s.normalise(text)
}

// lines ends a text that is not empty with the end of a line.
func lines(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// command is kubectl, alone with its home directory and its kubeconfig.
func (s *session) command(ctx context.Context, line string) *exec.Cmd {
	s.Helper()
	args := words(line)
	var environment []string
	if strings.HasPrefix(args[0], edition+"=") {
		environment, args = args[:1], args[1:]
	}
	if args[0] != "kubectl" {
		s.Fatalf("%q: a session has kubectl, stop and end", line)
	}
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	diff, err := exec.LookPath("diff")
	if err != nil {
		s.Fatal(err)
	}
	c := exec.CommandContext(ctx, self, args[1:]...)
	c.Env = append(environment, asKubectl+"=1", "HOME="+s.home, "KUBECONFIG="+s.kubeconfig, "TZ=UTC", "PATH=/nowhere",
		"KUBE_EDITOR="+self+" "+asEditor, "KUBECTL_EXTERNAL_DIFF="+diff)
	c.WaitDelay = commandTimeout
	return c
}

// words splits a command at its spaces, but for those within single quotes.
func words(line string) []string {
	var all []string
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		all = append(all, word.String())
	}
	return all
}
