// Program attributes starts OpenTelemetry's processor k8sattributes, which waits for its informers.
// Apart from that wait and the deployments' UIDs, which need the replica sets, it has its defaults.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor"
)

func main() {
	ctx, factory := context.Background(), k8sattributesprocessor.NewFactory()
	config := factory.CreateDefaultConfig().(*k8sattributesprocessor.Config)
	config.APIConfig.AuthType = "kubeConfig"
	config.Extract.Metadata = append(config.Extract.Metadata, "k8s.deployment.uid")
	config.WaitForMetadata, config.WaitForMetadataTimeout = true, 10*time.Minute
	settings := processortest.NewNopSettings(factory.Type())
	processor, err := factory.CreateTraces(ctx, settings, config, consumertest.NewNop())
	check(err)
	check(processor.Start(ctx, componenttest.NewNopHost()))
	fmt.Println("programs: ready")
	select {}
}

func check(err error) {
	if err != nil {
		slog.Error("attributes", "error", err)
		os.Exit(1)
	}
}
