package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
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

// check refuses flags that cannot be. client-go would find the same, later and without
// the flag's name.
func (f *clusterFlags) check(command string) error {
	if f.set.Changed("context") && !slices.ContainsFunc(f.contexts, func(name string) bool { return name != "" }) {
		return problem.Usage(command, "--context names no context: `kubectl config get-contexts` lists those there are")
	}
	if name := *f.given.Namespace; name != "" {
		if wrong := validation.ValidateNamespaceName(name, false); len(wrong) > 0 {
			return problem.Usage(command, "--namespace %q is no name of a namespace: %s", name, strings.Join(wrong, "; "))
		}
	}
	if _, err := clientcmd.ParseTimeout(*f.given.Timeout); err != nil {
		return problem.Usage(command, "--request-timeout %q: write a number of seconds, or one with its unit, as in 30s or 5m", *f.given.Timeout)
	}
	if server := *f.given.APIServer; server != "" {
		if _, _, err := rest.DefaultServerURL(server, "", schema.GroupVersion{}, false); err != nil {
			return problem.Usage(command, "--server %q: %w", server, err)
		}
	}
	return nil
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
