package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/homedir"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

// serverFlags are kubectl's flags that say which server is asked, and as whom.
type serverFlags struct {
	clientcmd.ConfigOverrides
	kubeconfig string
	cacheDir   string
	userExtra  []string // as KEY=VALUE
}

// bind adds the flags to a set, except --namespace and, with several, --context.
func (f *serverFlags) bind(flags *pflag.FlagSet, several bool) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "Path to the kubeconfig file to use")
	flags.StringVar(&f.cacheDir, "cache-dir", defaultCacheDir(),
		"Directory of the cache of the server's types, which kubectl has too")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	// A flag without a name is not added.
	none := clientcmd.FlagInfo{}
	names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password = none, none
	names.ContextOverrideFlags.Namespace = none
	if several {
		names.CurrentContext = none
	}
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	clientcmd.BindOverrideFlags(&f.ConfigOverrides, flags, names)
	flags.StringArrayVar(&f.userExtra, "as-user-extra", nil,
		"User extras to impersonate, as KEY=VALUE; this flag can be repeated, also for one key")
}

// defaultCacheDir returns the directory of kubectl's cache.
func defaultCacheDir() string {
	if dir := os.Getenv("KUBECACHEDIR"); dir != "" {
		return dir
	}
	return filepath.Join(homedir.HomeDir(), ".kube", "cache")
}

// loader returns the reader of the kubeconfig. As for kubectl, the server of an empty kubeconfig is
// on this machine.
func (f *serverFlags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	rules.ExplicitPath = f.kubeconfig
	overrides := f.ConfigOverrides
	overrides.ClusterDefaults = clientcmd.ClusterDefaults
	extras := map[string][]string{}
	for _, extra := range f.userExtra {
		key, value, _ := strings.Cut(extra, "=") // check has found the sign
		extras[key] = append(extras[key], value)
	}
	if len(extras) > 0 {
		overrides.AuthInfo.ImpersonateUserExtra = extras
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
}

// clusterFlags are the flags of a command for the choice of a cluster.
type clusterFlags struct {
	serverFlags
	// contexts and namespaces are the values for a command that accepts several.
	contexts   []string
	namespaces []string
	set        *pflag.FlagSet // the flags without --namespace
}

// newClusterFlags adds the flags to a command. With several, --context accepts several names.
func newClusterFlags(cmd *cobra.Command, several bool) *clusterFlags {
	f := &clusterFlags{set: pflag.NewFlagSet("cluster", pflag.ContinueOnError)}
	f.bind(f.set, several)
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
	if f.set.Changed("context") && strings.Join(f.contexts, "")+f.CurrentContext == "" {
		return problem.Usage("--context is empty: `kubectl config get-contexts` lists the contexts")
	}
	namespaces := f.namespaces
	if name := f.Context.Namespace; name != "" {
		namespaces = []string{name}
	}
	for _, name := range namespaces {
		if wrong := validation.ValidateNamespaceName(name, false); len(wrong) > 0 {
			return problem.Usage("--namespace %q is no name of a namespace: %s", name,
				strings.Join(wrong, "; "))
		}
	}
	if _, err := clientcmd.ParseTimeout(f.Timeout); err != nil {
		return problem.Usage("--request-timeout %q: write a number of seconds, or one with its unit, "+
			"as in 30s or 5m", f.Timeout)
	}
	for _, extra := range f.userExtra {
		if !strings.Contains(extra, "=") {
			return problem.Usage("--as-user-extra %q: write it as KEY=VALUE", extra)
		}
	}
	address := f.ClusterInfo.Server
	_, _, err := rest.DefaultServerURL(address, "", schema.GroupVersion{}, false)
	if err != nil && address != "" {
		return problem.Usage("--server %q: %w", address, err)
	}
	return nil
}

// each returns the flags for each context of a command that accepts several.
func (f *clusterFlags) each() []serverFlags {
	if len(f.contexts) == 0 {
		return []serverFlags{f.serverFlags}
	}
	var all []serverFlags
	for i, name := range f.contexts {
		if !slices.Contains(f.contexts[:i], name) {
			one := f.serverFlags
			one.CurrentContext = name
			all = append(all, one)
		}
	}
	return all
}

// completeContexts completes the names of contexts, also after a comma.
func (f *clusterFlags) completeContexts(
	_ *cobra.Command, _ []string, typed string,
) ([]string, cobra.ShellCompDirective) {
	raw, err := f.loader().RawConfig()
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
