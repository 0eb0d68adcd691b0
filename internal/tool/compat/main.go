// Command compat builds the packages of this repository with other versions of client-go and of
// controller-runtime, and runs the tests of the packages that know them.
//
//	go.mod ─▶ a copy ─▶ go get the versions ─▶ go build ─▶ go test, each with -modfile
//
// It prints a line for each version, and fails if one does not build or pass. Programs, examples and
// tools are left out.
//
// # Concurrency properties
//
// One version follows the other.
//
// # Memory
//
// Nothing is held but the packages' names and the output of a go command.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// staging are the modules that Kubernetes releases together, as far as go.mod requires them.
var staging = []string{"k8s.io/client-go", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/streaming"}

// overlay is the go.mod of a module with other requirements, in a directory of its own.
type overlay struct {
	dir  string // of the module
	file string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	clientGo := flag.String("client-go", "", "versions of client-go, separated by spaces")
	controllerRuntime := flag.String("controller-runtime", "",
		"versions of controller-runtime, separated by spaces")
	flag.Parse()
	failed := false
	try := func(module, version, dir string, modules, tested []string) {
		begin := time.Now()
		err := check(ctx, dir, version, modules, tested)
		result := "builds and passes"
		if err != nil {
			failed, result = true, err.Error()
		}
		fmt.Printf("%s %s, %v: %s\n", module, version, time.Since(begin).Round(time.Second), result)
	}
	for version := range strings.FieldsSeq(*clientGo) {
		try("client-go", version, ".", staging, []string{
			".", "./source", "./apisim", "./clientgo/...", "./controller/...", "./internal/decode/...",
		})
	}
	for version := range strings.FieldsSeq(*controllerRuntime) {
		try("controller-runtime", version, "ctrlruntime",
			[]string{"sigs.k8s.io/controller-runtime"}, []string{"./..."})
	}
	if failed {
		os.Exit(1)
	}
}

// check builds the packages of the module in dir with a version of some modules, and tests some of
// them.
func check(ctx context.Context, dir, version string, modules, tested []string) error {
	temporary, err := os.MkdirTemp("", "tidings-compat-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	o := overlay{dir: dir, file: filepath.Join(temporary, "go.mod")}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(temporary, name), text, 0o600); err != nil {
			return err
		}
	}
	var wanted []string
	for _, module := range modules {
		if _, err := o.run(ctx, "list", "-m", module+"@"+version); err != nil && module != modules[0] {
			wanted = append(wanted, module+"@none") // an older release does not have it
			continue
		}
		wanted = append(wanted, module+"@"+version)
	}
	if _, err := o.run(ctx, "get", wanted...); err != nil {
		return err
	}
	all, err := o.run(ctx, "list", "-e", "./...") // the build says what is missing
	if err != nil {
		return err
	}
	var packages []string
	for name := range strings.FieldsSeq(all) {
		if !regexp.MustCompile(`/(cmd|examples|internal/tool)(/|$)`).MatchString(name) {
			packages = append(packages, name)
		}
	}
	if _, err := o.run(ctx, "build", packages...); err != nil {
		return err
	}
	_, err = o.run(ctx, "test", append([]string{"-timeout", "30m"}, tested...)...)
	return err
}

// run runs a go command on the module and returns its output. The error has what the command said.
func (o overlay) run(ctx context.Context, command string, args ...string) (string, error) {
	var out, failure strings.Builder
	c := exec.CommandContext(ctx, "go", append([]string{command, "-modfile=" + o.file}, args...)...)
	c.Dir, c.Stdout, c.Stderr = o.dir, &out, &failure
	c.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s%s", command, err, out.String(), failure.String())
	}
	return out.String(), nil
}
