package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidings-go/tidings/ctrlruntime"
	cachev1alpha1 "github.com/tidings-go/tidings/examples/kubebuilder/api/v1alpha1"
)

// k8sClient reads and writes past the cache of the manager.
var k8sClient client.Client

// TestMain runs the tests beside a manager, on the server that envtest starts or is given.
func TestMain(m *testing.M) {
	code, err := runSuite(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the suite:", err)
		code = 1
	}
	os.Exit(code)
}

func runSuite(m *testing.M) (code int, err error) {
	scheme := clientgoscheme.Scheme
	if err := cachev1alpha1.AddToScheme(scheme); err != nil {
		return 0, err
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopping := environment.Stop(); err == nil {
			err = stopping
		}
	}()
	if k8sClient, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, NewCache: ctrlruntime.NewCache, NewClient: ctrlruntime.NewClient,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return 0, err
	}
	r := &MemcachedReconciler{Client: mgr.GetClient(), Events: mgr.GetEventRecorder("memcached")}
	if err := r.SetupWithManager(mgr); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	code = m.Run()
	cancel()
	return code, <-ended
}
