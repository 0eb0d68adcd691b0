package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// discoveryPerSecond is the rate of discovery's requests after the burst. Clusters with many custom
// types have hundreds of groups.
const discoveryPerSecond = 50

// clusterFlags are kubectl's flags for the choice of a cluster.
type clusterFlags struct {
	*genericclioptions.ConfigFlags
	// contexts and namespaces are the values for a command that accepts several.
	contexts   []string
	namespaces []string
	set        *pflag.FlagSet // the flags without --namespace
}

// newClusterFlags adds the flags to a command. With several, --context accepts several names.
func newClusterFlags(cmd *cobra.Command, several bool) *clusterFlags {
	f := &clusterFlags{
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(discoveryPerSecond),
		set:         pflag.NewFlagSet("cluster", pflag.ContinueOnError),
	}
	context, namespace := f.Context, f.Namespace
	if f.Namespace = nil; several {
		f.Context = nil
	}
	f.AddFlags(f.set) // flags whose field is nil are not added
	f.Context, f.Namespace = context, namespace
	if several {
		f.set.StringSliceVar(&f.contexts, "context", nil,
			"The name of the kubeconfig context to use; several, separated by commas, are watched at once")
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.AddFlagSet(f.set)
	complete(cmd, "context", f.completeContexts)
	cmd.SetUsageFunc(f.usage)
	return f
}

func (f *clusterFlags) usage(cmd *cobra.Command) error {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	own.SortFlags = false
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if f.set.Lookup(flag.Name) == nil {
			own.AddFlag(flag)
		}
	})
	_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n\nFlags:\n%s\n"+
		"Flags for the cluster, as for kubectl:\n%s", cmd.UseLine(), cmd.Example, own.FlagUsages(),
		f.set.FlagUsages())
	return err
}

// check returns an error for invalid flags. client-go would detect them later, and not name the
// flags.
func (f *clusterFlags) check() error {
	if f.set.Changed("context") && strings.Join(f.contexts, "")+*f.Context == "" {
		return problem.Usage("--context is empty: `kubectl config get-contexts` lists the contexts")
	}
	namespaces := f.namespaces
	if *f.Namespace != "" {
		namespaces = []string{*f.Namespace}
	}
	for _, name := range namespaces {
		if wrong := validation.ValidateNamespaceName(name, false); len(wrong) > 0 {
			return problem.Usage("--namespace %q is no name of a namespace: %s", name,
				strings.Join(wrong, "; "))
		}
	}
	if _, err := clientcmd.ParseTimeout(*f.Timeout); err != nil {
		return problem.Usage("--request-timeout %q: write a number of seconds, or one with its unit, "+
			"as in 30s or 5m", *f.Timeout)
	}
	_, _, err := rest.DefaultServerURL(*f.APIServer, "", schema.GroupVersion{}, false)
	if err != nil && *f.APIServer != "" {
		return problem.Usage("--server %q: %w", *f.APIServer, err)
	}
	return nil
}

// each returns the flags for each context of a command that accepts several.
func (f *clusterFlags) each() []*genericclioptions.ConfigFlags {
	if len(f.contexts) == 0 {
		return []*genericclioptions.ConfigFlags{f.ConfigFlags}
	}
	var all []*genericclioptions.ConfigFlags
	for i, name := range f.contexts {
		if slices.Contains(f.contexts[:i], name) {
			continue
		}
		one := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(discoveryPerSecond)
		one.Context = &name
		one.CacheDir, one.KubeConfig, one.ClusterName = f.CacheDir, f.KubeConfig, f.ClusterName
		one.AuthInfoName, one.APIServer = f.AuthInfoName, f.APIServer
		one.TLSServerName, one.Insecure, one.ProxyURL = f.TLSServerName, f.Insecure, f.ProxyURL
		one.CertFile, one.KeyFile, one.CAFile = f.CertFile, f.KeyFile, f.CAFile
		one.BearerToken, one.Timeout, one.DisableCompression = f.BearerToken, f.Timeout, f.DisableCompression
		one.Impersonate, one.ImpersonateUID = f.Impersonate, f.ImpersonateUID
		one.ImpersonateGroup, one.ImpersonateUserExtra = f.ImpersonateGroup, f.ImpersonateUserExtra
		all = append(all, one)
	}
	return all
}

// completeContexts completes the names of contexts, also after a comma.
func (f *clusterFlags) completeContexts(
	_ *cobra.Command, _ []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	raw, err := f.ToRawKubeConfigLoader().RawConfig()
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

// completeTimeout bounds the time for which completion waits for a cluster.
const completeTimeout = 3 * time.Second

// completeTypes completes the names of types, also after a comma. It completes nothing if the
// cluster does not answer.
func (f *clusterFlags) completeTypes(
	cmd *cobra.Command, args []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	c, err := open(ctx, f.each()[0])
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	last := strings.LastIndex(typed, ",") + 1
	for _, name := range c.typeNames() {
		if strings.HasPrefix(name, typed[last:]) {
			names = append(names, typed[:last]+name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
