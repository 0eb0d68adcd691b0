package main

import (
	"context"
	"path/filepath"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/tidings-go/tidings/apiserver"
)

// existing is the environment that makes envtest use the server of the kubeconfig.
var existing = []string{"USE_EXISTING_CLUSTER=true"}

// startServer starts an API server and returns the environment that makes controller-runtime's
// envtest use it.
func startServer(
	ctx context.Context, dir string,
) (s *apiserver.Server, environment []string, err error) {
	s, err = apiserver.New(ctx, apiserver.Options{})
	if err != nil {
		return nil, nil, err
	}
	config, kubeconfig := s.Config(), api.NewConfig()
	const name = "upstream"
	// As envtest's own address does, it ends in a slash: tests append paths to it.
	kubeconfig.Clusters[name] = &api.Cluster{Server: config.Host + "/",
		CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: config.CertData,
		ClientKeyData: config.KeyData, Token: config.BearerToken}
	kubeconfig.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	file := filepath.Join(dir, "kubeconfig")
	environment = append(slices.Clone(existing), "KUBECONFIG="+file)
	return s, environment, clientcmd.WriteToFile(*kubeconfig, file)
}
