// Program discovery runs Prometheus' discovery of pods, and holds the target groups that it sends,
// as Prometheus' discovery manager does. It is ready when there is one for each pod.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

func main() {
	pods, err := strconv.Atoi(os.Getenv("PROGRAMS_PODS"))
	check(err)
	config := kubernetes.DefaultSDConfig
	config.Role, config.KubeConfig = kubernetes.RolePod, os.Getenv("KUBECONFIG")
	registry := prometheus.NewRegistry()
	metrics := config.NewDiscovererMetrics(registry, discovery.NewRefreshMetrics(registry))
	check(metrics.Register())
	discoverer, err := kubernetes.New(slog.Default(), metrics, &config)
	check(err)
	groups := make(chan []*targetgroup.Group)
	go discoverer.Run(context.Background(), groups)
	targets := map[string]*targetgroup.Group{}
	for received := range groups {
		for _, group := range received {
			if targets[group.Source] = group; len(targets) == pods {
				fmt.Println("programs: ready")
			}
		}
	}
}

func check(err error) {
	if err != nil {
		slog.Error("discovery", "error", err)
		os.Exit(1)
	}
}
