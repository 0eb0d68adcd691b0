package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidings-go/tidings/apisim"
)

// asCommand in the environment makes the test binary be the operator.
const asCommand = "TEST_OPERATOR_RUNS_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	log.SetLogger(logr.Discard())
	// utilruntime delays a caller that reports errors too fast. It measures this by the clock of
	// the process; from within a bubble of virtual time the delay can be decades. So its handlers
	// but the first, which logs, are removed.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}

// TestCommand runs the operator as one does, in a process of its own, and interrupts it.
func TestCommand(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	server := newServer(t, apisim.Options{})
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"it": {Server: url}},
		Contexts:       map[string]*api.Context{"it": {Cluster: "it"}},
		CurrentContext: "it",
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	create(t, server, website(t, "shop", "front", "hello"))

	command := exec.CommandContext(ctx, os.Args[0], "--kubeconfig", kubeconfig, "--namespaces", "shop,blog") //nolint:gosec // it is this very binary
	command.Env = append(os.Environ(), asCommand+"=1")
	command.Stderr = t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, ctx, "the website has its ConfigMap", func(context.Context) bool {
		objs, _, err := server.List(ctx, configMapsResource(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		return len(objs) == 1 && objs[0].(*corev1.ConfigMap).Data["index.html"] == "hello"
	})
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the operator ended with %v, want success after an interrupt", err)
	}
}

// TestCaches checks whose informers each cache has.
func TestCaches(t *testing.T) {
	if _, err := options("none", nil); err == nil || !strings.Contains(err.Error(), `no cache "none"`) {
		t.Errorf("the error for a cache that there is not: %v", err)
	}
	server := newServer(t, apisim.Options{})
	for caching, of := range map[string]string{
		stockCache: "k8s.io/client-go/", tidingsInformers: "github.com/tidings-go/tidings/clientgo/", tidingsCache: "github.com/tidings-go/tidings/ctrlruntime",
	} {
		c := newCache(t, server, caching, cache.Options{})
		informer, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
		if err != nil {
			t.Fatal(err)
		}
		if path := reflect.TypeOf(informer).Elem().PkgPath(); !strings.HasPrefix(path, of) {
			t.Errorf("the cache %q has informers of %s, want %s", caching, path, of)
		}
	}
}

func TestSplit(t *testing.T) {
	for list, want := range map[string][]string{"": {}, "shop": {"shop"}, "shop, blog,": {"shop", "blog"}} {
		if got := split(list); !slices.Equal(got, want) {
			t.Errorf("split(%q) = %q, want %q", list, got, want)
		}
	}
}
