package cli

import (
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

const (
	// discoveryBurst is how many requests discovery may make at once; clusters
	// with many custom types have hundreds of groups.
	discoveryBurst = 300
	// discoveryPerSecond is how many follow.
	discoveryPerSecond = 50
)

// clusterFlags are kubectl's flags for a cluster. Unlike kubectl's, --context may name
// several.
type clusterFlags struct {
	given    *genericclioptions.ConfigFlags
	contexts []string
	set      *pflag.FlagSet // those that have no place of their own in the help
}

func newClusterFlags() *clusterFlags {
	f := &clusterFlags{given: genericclioptions.NewConfigFlags(true), set: pflag.NewFlagSet("cluster", pflag.ContinueOnError)}
	f.given.Namespace, f.given.Context = nil, nil // they have flags of their own
	f.given.AddFlags(f.set)
	f.given.Namespace = new("")
	f.set.StringSliceVar(&f.contexts, "context", nil, "The name of the kubeconfig context to use; several, separated by commas, are watched at once")
	return f
}

// namespaceVar adds the flag of the namespace, with a text of the command's.
func (f *clusterFlags) namespaceVar(flags *pflag.FlagSet, usage string) {
	flags.StringVarP(f.given.Namespace, "namespace", "n", "", usage)
}

// each returns the flags of each cluster that is meant: of the current context if none
// was named.
func (f *clusterFlags) each() []*genericclioptions.ConfigFlags {
	names := []string{""}
	if len(f.contexts) > 0 {
		names = nil
		for _, name := range f.contexts {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	var all []*genericclioptions.ConfigFlags
	for _, name := range names {
		all = append(all, f.of(name))
	}
	return all
}

// of returns the flags with one context. Each has a client of its own.
func (f *clusterFlags) of(context string) *genericclioptions.ConfigFlags {
	one := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(discoveryBurst).WithDiscoveryQPS(discoveryPerSecond)
	g := f.given
	one.Context = &context
	one.CacheDir, one.KubeConfig, one.ClusterName, one.AuthInfoName, one.Namespace = g.CacheDir, g.KubeConfig, g.ClusterName, g.AuthInfoName, g.Namespace
	one.APIServer, one.TLSServerName, one.Insecure, one.ProxyURL = g.APIServer, g.TLSServerName, g.Insecure, g.ProxyURL
	one.CertFile, one.KeyFile, one.CAFile, one.BearerToken = g.CertFile, g.KeyFile, g.CAFile, g.BearerToken
	one.Impersonate, one.ImpersonateUID, one.ImpersonateGroup, one.ImpersonateUserExtra = g.Impersonate, g.ImpersonateUID, g.ImpersonateGroup, g.ImpersonateUserExtra
	one.Username, one.Password, one.Timeout, one.DisableCompression = g.Username, g.Password, g.Timeout, g.DisableCompression
	return one
}
