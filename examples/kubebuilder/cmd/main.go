// Command memcached is an operator in the shape of a project of kubebuilder, on Tidings.
//
//	USE_EXISTING_CLUSTER=true tidings serve -- go test ./...
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tidings-go/tidings/ctrlruntime"
	cachev1alpha1 "github.com/tidings-go/tidings/examples/kubebuilder/api/v1alpha1"
	"github.com/tidings-go/tidings/examples/kubebuilder/internal/controller"
)

// electionID is the name of the Lease of the leader.
const electionID = "memcached.cache.example.com"

// options are the flags.
type options struct {
	metrics, probes string
	elect           bool
	namespace       string // of the Lease
	again           bool   // other operators ran in this process
}

func main() {
	var o options
	flag.StringVar(&o.metrics, "metrics-bind-address", "0", "the address of the metrics; 0 is none")
	flag.StringVar(&o.probes, "health-probe-bind-address", ":8081", "the address of the probes")
	flag.BoolVar(&o.elect, "leader-elect", false, "let one replica reconcile at a time")
	logs := zap.Options{}
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logs)))

	o.namespace = os.Getenv("POD_NAMESPACE")
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), o); err != nil {
		fmt.Fprintln(os.Stderr, "memcached:", err)
		os.Exit(1)
	}
}

// run is the operator until ctx ends.
func run(ctx context.Context, cluster *rest.Config, o options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, cachev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        scheme,
		NewCache:                      ctrlruntime.NewCache,
		NewClient:                     ctrlruntime.NewClient,
		Metrics:                       metricsserver.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:        o.probes,
		LeaderElection:                o.elect,
		LeaderElectionID:              electionID,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with the manager
		Controller:                    config.Controller{SkipNameValidation: &o.again},
	})
	if err != nil {
		return err
	}
	reconciler := &controller.MemcachedReconciler{
		Client: mgr.GetClient(), Events: mgr.GetEventRecorder("memcached"),
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
