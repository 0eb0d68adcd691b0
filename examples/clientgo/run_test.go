package clientgo_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/apisim"
)

// maxWait bounds the time until the next line of a program.
const maxWait = time.Minute

// cluster is an API server that a test changes while a program follows it.
type cluster struct {
	t      *testing.T
	server *apisim.Server
	url    string
}

// newCluster starts a server. The middleware may be nil.
func newCluster(t *testing.T, middleware func(http.Handler) http.Handler) *cluster {
	t.Helper()
	server := apisim.Options{Middleware: middleware}.Start(t)
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t, server, url}
}

func (c *cluster) create(objects ...runtime.Object) {
	c.t.Helper()
	for _, obj := range objects {
		if _, err := c.server.Create(c.t.Context(), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) delete(gvr schema.GroupVersionResource, namespace, name string) {
	c.t.Helper()
	if _, err := c.server.Delete(c.t.Context(), gvr, namespace, name); err != nil {
		c.t.Fatal(err)
	}
}

// edit changes an object on the server as somebody else would.
func edit[T runtime.Object](c *cluster, gvr schema.GroupVersionResource, namespace, name string, change func(T)) {
	c.t.Helper()
	obj, err := c.server.Get(c.t.Context(), gvr, namespace, name)
	if err != nil {
		c.t.Fatal(err)
	}
	changed := obj.DeepCopyObject().(T)
	change(changed)
	if _, err := c.server.Update(c.t.Context(), changed); err != nil {
		c.t.Fatal(err)
	}
}

// process is a program that runs.
type process struct {
	t       *testing.T
	command *exec.Cmd
	name    string
	lines   chan string // of the standard output
	stdout  bytes.Buffer
	errors  chan string // lines of the standard error
	stderr  bytes.Buffer
	readers chan struct{} // one value for each stream that was read to its end
}

// start runs a program against a cluster.
func (c *cluster) start(binaries, program string, arguments ...string) *process {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(cancel)
	p := &process{
		t: c.t, name: program,
		command: exec.CommandContext(ctx, filepath.Join(binaries, program), append([]string{"--server", c.url}, arguments...)...),
		lines:   make(chan string, 1000), errors: make(chan string, 1000), readers: make(chan struct{}, 2),
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	stderr, err := p.command.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		c.t.Fatal(err)
	}
	go p.read(stdout, &p.stdout, p.lines)
	go p.read(stderr, &p.stderr, p.errors)
	return p
}

// read keeps a stream, and sends it line by line.
func (p *process) read(stream io.Reader, all *bytes.Buffer, lines chan<- string) {
	scanner := bufio.NewScanner(io.TeeReader(stream, all))
	for scanner.Scan() {
		lines <- scanner.Text()
	}
	close(lines)
	p.readers <- struct{}{}
}

// expect waits for the next line of the standard output.
func (p *process) expect(want string) {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.fail("it ended before the line %q", want)
		}
		if line != want {
			p.fail("it printed\n\t%q\nnot\n\t%q", line, want)
		}
	case <-time.After(maxWait):
		p.fail("it printed nothing for %v", maxWait)
	}
}

// interrupt asks the program to stop, as Ctrl-C does, and returns its output.
func (p *process) interrupt() string {
	p.t.Helper()
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	return p.end()
}

// end waits for the program to end by itself and returns its output.
func (p *process) end() string {
	p.t.Helper()
	for range cap(p.readers) {
		select {
		case <-p.readers:
		case <-time.After(maxWait):
			p.fail("it did not end within %v", maxWait)
		}
	}
	if err := p.command.Wait(); err != nil {
		p.t.Fatalf("%s: %v\n%s", p.name, err, p.stderr.String())
	}
	return p.stdout.String()
}

// fail ends the program, so that its streams can be read, and then the test.
func (p *process) fail(format string, arguments ...any) {
	p.t.Helper()
	p.command.Process.Kill() //nolint:errcheck // it may have ended
	for line := range p.lines {
		p.t.Logf("then it printed %q", line)
	}
	for line := range p.errors {
		p.t.Logf("on stderr: %s", strings.TrimSpace(line))
	}
	p.t.Fatalf(p.name+": "+format, arguments...)
}
