package cache_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

// childVariable is the environment variable of a child process of a test. It names the part to
// run.
const childVariable = "TIDINGS_CHILD_OF_TEST"

// isChild returns the part of the test that the process runs as a child, and reports whether it
// is a child.
func isChild() (part string, ok bool) { return os.LookupEnv(childVariable) }

// runChild runs the test again in a process of its own, where isChild returns the part. It
// returns the output and the exit code.
func runChild(t *testing.T, test, part string, env ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), childVariable+"="+part), env...)
	printed, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(printed), exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("running the child: %v\n%s", err, printed)
	}
	return string(printed), 0
}
