package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

const (
	// discoveryBurst is how many requests discovery may make at once; clusters with many custom
	// types have hundreds of groups.
	discoveryBurst = 300
	// discoveryPerSecond is how many follow.
	discoveryPerSecond = 50
)

// clusterFlags are kubectl's flags for a cluster. Unlike kubectl's, --context and --namespace may
// name several.
type clusterFlags struct {
	*genericclioptions.ConfigFlags
	contexts   []string
	namespaces []string
	set        *pflag.FlagSet // without --namespace
}

func newClusterFlags() *clusterFlags {
	f := &clusterFlags{
		ConfigFlags: genericclioptions.NewConfigFlags(true),
		set:         pflag.NewFlagSet("cluster", pflag.ContinueOnError),
	}
	f.Namespace, f.Context = nil, nil // AddFlags would add their flags
	f.AddFlags(f.set)
	f.set.StringSliceVar(&f.contexts, "context", nil,
		"The name of the kubeconfig context to use; several, separated by commas, are watched "+
			"at once")
	return f
}

// check returns an error for invalid flags. client-go would find them later, without the names of
// the flags.
func (f *clusterFlags) check(command string) error {
	if f.set.Changed("context") && strings.Join(f.contexts, "") == "" {
		return problem.Usage(command, "--context is empty: `kubectl config get-contexts` lists "+
			"the contexts")
	}
	for _, name := range f.namespaces {
		if wrong := validation.ValidateNamespaceName(name, false); len(wrong) > 0 {
			return problem.Usage(command, "--namespace %q is no name of a namespace: %s", name,
				strings.Join(wrong, "; "))
		}
	}
	if _, err := clientcmd.ParseTimeout(*f.Timeout); err != nil {
		return problem.Usage(command,
			"--request-timeout %q: write a number of seconds, or one with its unit, as in "+
				"30s or 5m", *f.Timeout)
	}
	if server := *f.APIServer; server != "" {
		_, _, err := rest.DefaultServerURL(server, "", schema.GroupVersion{}, false)
		if err != nil {
			return problem.Usage(command, "--server %q: %w", server, err)
		}
	}
	return nil
}

// each returns the flags for each cluster. Without --context that is the one of the current
// context.
func (f *clusterFlags) each() []*genericclioptions.ConfigFlags {
	var names []string
	for _, name := range f.contexts {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		names = []string{""}
	}
	var all []*genericclioptions.ConfigFlags
	for _, name := range names {
		all = append(all, f.of(name))
	}
	return all
}

// of returns the flags with one context, and with a client of their own.
func (f *clusterFlags) of(context string) *genericclioptions.ConfigFlags {
	one := genericclioptions.NewConfigFlags(true)
	one = one.WithDiscoveryBurst(discoveryBurst).WithDiscoveryQPS(discoveryPerSecond)
	one.Context, one.Namespace = &context, new("")
	if len(f.namespaces) > 0 {
		one.Namespace = &f.namespaces[0]
	}
	one.CacheDir, one.KubeConfig, one.ClusterName = f.CacheDir, f.KubeConfig, f.ClusterName
	one.AuthInfoName, one.APIServer = f.AuthInfoName, f.APIServer
	one.TLSServerName, one.Insecure, one.ProxyURL = f.TLSServerName, f.Insecure, f.ProxyURL
	one.CertFile, one.KeyFile, one.CAFile = f.CertFile, f.KeyFile, f.CAFile
	one.BearerToken, one.Username, one.Password = f.BearerToken, f.Username, f.Password
	one.Impersonate, one.ImpersonateUID = f.Impersonate, f.ImpersonateUID
	one.ImpersonateGroup, one.ImpersonateUserExtra = f.ImpersonateGroup, f.ImpersonateUserExtra
	one.Timeout, one.DisableCompression = f.Timeout, f.DisableCompression
	return one
}

// completeContexts completes the names of contexts, also after a comma.
func (f *clusterFlags) completeContexts(
	_ *cobra.Command, _ []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	raw, err := f.of("").ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for name := range raw.Contexts {
		names = append(names, typed[:strings.LastIndex(typed, ",")+1]+name)
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
