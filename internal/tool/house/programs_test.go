package house

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/apisim"
)

// program is a package of the docs: a block with a package clause, and those that belong to it.
type program struct {
	name   string // of its directory
	blocks []block
	main   bool     // whether it has a function main
	tests  []string // names of its tests
}

var (
	mainFunction = regexp.MustCompile(`(?m)^func main\(\) \{`)
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{`)
	fileName     = regexp.MustCompile(`\A# (\S+\.yaml)\n`)
)

// programsOf returns the programs of the pages. A block of package main without a function main
// belongs to the program before it on the page.
func programsOf(t *testing.T, all []block) []*program {
	t.Helper()
	var list []*program
	for _, b := range all {
		if b.language != "go" || !strings.HasPrefix(b.text, "package ") {
			continue
		}
		hasMain := mainFunction.MatchString(b.text)
		if hasMain || !strings.HasPrefix(b.text, "package main\n") {
			list = append(list, &program{name: fmt.Sprintf("program%d", len(list)), main: hasMain})
		}
		if len(list) == 0 || !hasMain && len(list[len(list)-1].blocks) > 0 &&
			list[len(list)-1].blocks[0].page != b.page {
			t.Errorf("%s:%d: the page has no program before this block", b.page, b.line)
			continue
		}
		p := list[len(list)-1]
		p.blocks = append(p.blocks, b)
		for _, match := range testFunction.FindAllStringSubmatch(b.text, -1) {
			p.tests = append(p.tests, match[1])
		}
	}
	return list
}

// checkPrograms vets, tests and runs the programs as packages of one module, which requires this
// one as the module of a user does. One binary has all of them, as linking takes longer than the
// rest: package main of a page has another name in it, and its functions main are called by name.
// A block of YAML that begins with the name of a file is such a file for tests.
func checkPrograms(t *testing.T, all []block) {
	programs := programsOf(t, all)
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	required := strings.Replace(readFile(t, "go.mod"), "module "+module+"\n", "module programs\n", 1)
	sums := readFile(t, "go.sum")
	t.Chdir(t.TempDir())
	writeFile(t, "go.mod", fmt.Sprintf("%s\nrequire %[2]s v0.0.0\n\nreplace %[2]s => %[3]q\n",
		required, module, root))
	writeFile(t, "go.sum", sums)
	var definitions []string
	for _, b := range all {
		name := fileName.FindStringSubmatch(b.text)
		if b.language != "yaml" || name == nil {
			continue
		}
		writeFile(t, name[1], b.text)
		if strings.Contains(b.text, "kind: CustomResourceDefinition") {
			definitions = append(definitions, name[1])
		}
	}
	for _, p := range programs {
		if err := os.Mkdir(p.name, 0o700); err != nil {
			t.Fatal(err)
		}
		for i, b := range p.blocks {
			text := strings.Replace(b.text, "package main\n", "package "+p.name+"\n", 1)
			text = mainFunction.ReplaceAllString(text, "func Main() {")
			writeFile(t, filepath.Join(p.name, fmt.Sprintf("file%d.go", i)),
				fmt.Sprintf("//line %s:%d\n%s", b.page, b.line, text))
		}
	}
	if err := os.Mkdir("driver", 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join("driver", "driver_test.go"), driver(programs))
	for _, arguments := range []string{"vet ./...", "test -c -vet=off -o driver.test ./driver"} {
		out, err := exec.CommandContext(t.Context(), "go", strings.Fields(arguments)...).CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", arguments, err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "./driver.test").CombinedOutput(); err != nil {
		t.Errorf("the tests of the pages: %v\n%s", err, out)
	}
	for _, p := range programs {
		if !p.main {
			continue
		}
		if b := p.blocks[0]; b.output == "" {
			p.serveUntilSIGTERM(t, definitions)
		} else {
			p.checkOutput(t)
		}
	}
}

// driver returns a file that runs the tests of all programs, or the program that the environment
// names.
func driver(programs []*program) string {
	var imports, mains, tests strings.Builder
	for _, p := range programs {
		if !p.main && len(p.tests) == 0 {
			continue
		}
		fmt.Fprintf(&imports, "\t%s \"programs/%[1]s\"\n", p.name)
		if p.main {
			fmt.Fprintf(&mains, "\tcase %q:\n\t\t%s.Main()\n", p.name, p.name)
		}
		for _, name := range p.tests {
			fmt.Fprintf(&tests, "\nfunc %s_%s(t *testing.T) { %s.%[1]s(t) }\n", name, p.name, p.name)
		}
	}
	return "package driver\n\nimport (\n\t\"os\"\n\t\"testing\"\n\n" + imports.String() + `)

func TestMain(m *testing.M) {
	switch os.Getenv("PROGRAM") {
` + mains.String() + `	default:
		os.Exit(m.Run())
	}
}
` + tests.String()
}

// command returns the command that runs the program. If it listens, it takes the flag -listen.
func (p *program) command(ctx context.Context, variables ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "./driver.test")
	if strings.Contains(p.blocks[0].text, `flag.String("listen"`) {
		c.Args = append(c.Args, "-listen", "127.0.0.1:0")
	}
	c.Env = append(append(os.Environ(), "PROGRAM="+p.name), variables...)
	return c
}

// checkOutput compares what the program prints with the block that follows it.
func (p *program) checkOutput(t *testing.T) {
	t.Helper()
	b := p.blocks[0]
	out, err := p.command(t.Context()).CombinedOutput()
	printed := strings.ReplaceAll(string(out), p.name+".", "main.") // names of types
	if err != nil {
		t.Errorf("%s:%d: %v\n%s", b.page, b.line, err, out)
	} else if printed != b.output {
		t.Errorf("%s:%d: the program prints\n%s\nand the page says\n%s", b.page, b.line, printed,
			b.output)
	}
}

// serveUntilSIGTERM runs the program on a server of its own, with a Deployment and a Pod. When it
// has read from the server and has printed something, it has to end in good order.
func (p *program) serveUntilSIGTERM(t *testing.T, definitions []string) {
	t.Helper()
	b := p.blocks[0]
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close() //nolint:errcheck // the program has ended
	if err := server.Load(definitions...); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "default", Name: "web"}
	for _, object := range []runtime.Object{
		&appsv1.Deployment{ObjectMeta: meta}, &corev1.Pod{ObjectMeta: meta},
	} {
		if _, err := server.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan struct{})
	seen := sync.OnceFunc(func() { close(read) })
	for _, verb := range []string{"list", "watch"} {
		server.Inject(apisim.Match{Verb: verb}, apisim.Call(func(*http.Request) { seen() }))
	}
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := p.name + ".kubeconfig"
	writeFile(t, kubeconfig, "apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"contexts: [{name: c, context: {cluster: c}}]\n"+
		"clusters: [{name: c, cluster: {server: \""+url+"\"}}]\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := p.command(ctx, "KUBECONFIG="+kubeconfig)
	printed, out := io.Pipe()
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	first, text := make(chan struct{}), make(chan string, 1)
	go func() {
		var all strings.Builder
		began := sync.OnceFunc(func() { close(first) })
		for lines := bufio.NewScanner(printed); lines.Scan(); began() {
			all.WriteString(lines.Text() + "\n")
		}
		began()
		text <- all.String()
	}()
	for _, wait := range []chan struct{}{read, first} {
		select {
		case <-wait:
		case <-ctx.Done():
			t.Errorf("%s:%d: the program reads nothing, or prints nothing", b.page, b.line)
		}
	}
	signalled := time.Now()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("%s:%d: the program ended by itself: %v", b.page, b.line, err)
	}
	err = c.Wait()
	out.Close() //nolint:errcheck // a pipe's Close returns nil
	if took := time.Since(signalled); err != nil || took > 20*time.Second {
		t.Errorf("%s:%d: after SIGTERM the program ended in %v: %v\n%s", b.page, b.line, took, err,
			<-text)
	}
}
