package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/tidings-go/tidings/cmd/tidings/internal/resolve"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

const (
	// completeTimeout bounds how long somebody who pressed the key waits.
	completeTimeout = 3 * time.Second
	// completeLimit is how many names of objects are asked for.
	completeLimit = 500
)

// completeOnly is what a shell is to do with what was found: offer that, and no files.
const completeOnly = cobra.ShellCompDirectiveNoFileComp

// completer answers what a shell asks when the completion key is pressed. What cannot be
// found out, because there is no cluster or it does not answer, is not offered; nothing
// is said about it, since there is no place for that.
type completer struct {
	clusters *clusterFlags
	all      *bool // all namespaces
}

// complete makes the words the values that are offered for a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	completeBy(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, completeOnly
	})
}

// completeBy makes a function offer the values of a flag.
func completeBy(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // there is no such flag: a mistake in this package
	}
}

// install makes the completer answer for a command's arguments and the flags of its
// cluster.
func (c *completer) install(cmd *cobra.Command) {
	cmd.ValidArgsFunction = c.arguments
	completeBy(cmd, "namespace", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return c.objects(cmd.Context(), query{kind: "namespaces"}, "", typed), completeOnly
	})
	completeBy(cmd, "context", c.listed(func(config kubeconfigNames) []string { return config.contexts }))
	completeBy(cmd, "cluster", c.listed(func(config kubeconfigNames) []string { return config.clusters }))
	completeBy(cmd, "user", c.listed(func(config kubeconfigNames) []string { return config.users }))
}

// arguments offers types, and objects of those that were typed.
func (c *completer) arguments(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	before, last := cutLast(typed, ",")
	if kind, name, both := strings.Cut(last, "/"); both {
		return c.objects(cmd.Context(), query{kind: kind}, before+kind+"/", name), completeOnly
	}
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		return without(c.objects(cmd.Context(), query{kind: firstOf(args[0])}, "", typed), args[1:]), completeOnly
	}
	words := c.types(cmd.Context(), before, last)
	if len(args) == 0 {
		return words, completeOnly
	}
	for i := range words {
		words[i] += "/" // as in the arguments before
	}
	return words, completeOnly | cobra.ShellCompDirectiveNoSpace
}

// types offers names of types that begin with what was typed, plurals for the most part.
func (c *completer) types(ctx context.Context, before, typed string) []string {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	cluster, err := c.cluster(ctx)
	if err != nil {
		return nil
	}
	discovery, err := cluster.flags.ToDiscoveryClient()
	if err != nil {
		return nil
	}
	lists, _ := discovery.ServerPreferredResources() // what came without errors is offered
	var words []string
	for _, name := range resolve.Names(lists, typed) {
		words = append(words, before+name)
	}
	return words
}

// objects offers the names of objects of a type, after a text that was typed already.
func (c *completer) objects(ctx context.Context, q query, before, typed string) []string {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	cluster, err := c.cluster(ctx)
	if err != nil {
		return nil
	}
	types, err := cluster.types([]query{q})
	if err != nil {
		return nil
	}
	client, err := metadata.NewForConfig(cluster.config)
	if err != nil {
		return nil
	}
	namespace, _, err := cluster.namespace()
	if err != nil {
		return nil
	}
	var resource metadata.ResourceInterface = client.Resource(types[0].Resource)
	if types[0].Namespaced && !*c.all {
		resource = client.Resource(types[0].Resource).Namespace(namespace)
	}
	list, err := resource.List(ctx, metav1.ListOptions{Limit: completeLimit})
	if err != nil {
		return nil
	}
	var words []string
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, typed) && view.Printable(name) == name {
			words = append(words, before+name)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// cluster returns the one that the flags name, the first where they name several.
func (c *completer) cluster(ctx context.Context) (*cluster, error) {
	return open(ctx, c.clusters.each()[0])
}

// kubeconfigNames are the names in a kubeconfig.
type kubeconfigNames struct{ contexts, clusters, users []string }

// listed offers names of a kubeconfig, also after a comma.
func (c *completer) listed(of func(kubeconfigNames) []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		raw, err := c.clusters.of("").ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, completeOnly
		}
		var names kubeconfigNames
		for name := range raw.Contexts {
			names.contexts = append(names.contexts, name)
		}
		for name := range raw.Clusters {
			names.clusters = append(names.clusters, name)
		}
		for name := range raw.AuthInfos {
			names.users = append(names.users, name)
		}
		before, _ := cutLast(typed, ",")
		var words []string
		for _, name := range of(names) {
			words = append(words, before+name)
		}
		slices.Sort(words)
		return words, completeOnly
	}
}

// cutLast splits a text after the last separator.
func cutLast(text, separator string) (before, last string) {
	i := strings.LastIndex(text, separator)
	return text[:i+1], text[i+1:]
}

func firstOf(kinds string) string {
	first, _, _ := strings.Cut(kinds, ",")
	return first
}

// without leaves out words that were typed already.
func without(words, typed []string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(typed, word) })
}
