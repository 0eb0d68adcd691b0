package cli_test

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/tidings-go/tidings/flight"
)

// TestWhatCanBeKnownFailsAtOnce runs commands that wait for their standard input, create many objects,
// ask a cluster or play a recording, with something that cannot work afterwards.
func TestWhatCanBeKnownFailsAtOnce(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nothing was sent
	recorder, err := flight.New(flight.Options{})
	if err != nil {
		t.Fatal(err)
	}
	recording, err := recorder.DumpFile(t.TempDir(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	file := textFile(t, t.TempDir(), "file", "")
	nowhere := kubeconfig(t, "http://127.0.0.1:1")
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"serve, an address": {[]string{"serve", "--load", "-", "--listen", taken.Addr().String()}, 1, "choose another address with --listen"},
		"serve, a command":  {[]string{"serve", "--load", "-", "--", "no-such-program"}, 127, "was not found"},
		"serve, a file":     {[]string{"serve", "--load", "-", "--write-kubeconfig", filepath.Join(file, "x")}, 1, "kubeconfig"},
		"demo, an address":  {[]string{"demo", "--pods", "200000", "--listen", taken.Addr().String()}, 1, "choose another address with --listen"},
		"demo, a page":      {[]string{"demo", "--pods", "200000", "--page", taken.Addr().String()}, 1, "choose another address with --page"},
		"record, a file":    {[]string{"record", "--kubeconfig", nowhere, "--dir", file, "pods"}, 1, "choose another --dir"},
		"replay, a page":    {[]string{"replay", recording, "--page", taken.Addr().String()}, 1, "choose another address with --page"},
		"top, no terminal":  {[]string{"top", "deploy/x", "--kubeconfig", nowhere}, 2, "the output is no terminal"},
	} {
		t.Run(name, func(t *testing.T) {
			input, _ := io.Pipe() // which never ends
			s := startWith(t, input, test.args...)
			s.expect(t, test.code, test.says)
			if out := s.out.String(); out != "" {
				t.Errorf("it fails after output: %s", out)
			}
		})
	}
}
