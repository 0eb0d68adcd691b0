package cli

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/resolve"
)

const (
	// requestsPerSecond and requestBurst are for lists and watches.
	requestsPerSecond, requestBurst = 50, 100
	// dialTimeout bounds how long a connection takes to come about.
	dialTimeout = 5 * time.Second
)

// cluster is the API server that the kubeconfig and the flags name.
type cluster struct {
	flags  *genericclioptions.ConfigFlags
	config *rest.Config
	target problem.Target
}

// open reads the kubeconfig. It sends nothing. Discovery, which takes no context,
// ends with ctx.
func open(ctx context.Context, flags *genericclioptions.ConfigFlags) (*cluster, error) {
	c := &cluster{flags: flags}
	loader := flags.ToRawKubeConfigLoader()
	c.target = problem.Target{Context: *flags.Context, Kubeconfig: loader.ConfigAccess().GetDefaultFilename()}
	if explicit := *flags.KubeConfig; explicit != "" {
		if _, err := os.Stat(explicit); err != nil {
			return nil, fmt.Errorf("the kubeconfig cannot be read: %w: check --kubeconfig", err)
		}
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, c.target.Explain(err)
	}
	if c.target.Context == "" {
		c.target.Context = raw.CurrentContext
	}
	if named, ok := raw.Contexts[c.target.Context]; ok {
		c.target.User = named.AuthInfo
	} else if c.target.Context != "" {
		return nil, noSuchContext(c.target, raw)
	}
	for _, user := range []*string{flags.AuthInfoName, flags.Username, flags.Impersonate} {
		if user != nil && *user != "" {
			c.target.User = *user
		}
	}
	c.config, err = flags.ToRESTConfig()
	if err != nil {
		return nil, c.target.Explain(err)
	}
	c.target.Server = c.config.Host
	c.target.Configured = len(raw.Clusters) > 0 || *flags.APIServer != "" || c.config.BearerTokenFile != ""
	c.config.QPS, c.config.Burst = requestsPerSecond, requestBurst
	prepare(c.config)
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		prepare(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &boundTransport{ctx, next} })
		return config
	}
	return c, nil
}

// noSuchContext names the contexts that there are.
func noSuchContext(target problem.Target, raw clientcmdapi.Config) error {
	names := slices.Sorted(maps.Keys(raw.Contexts))
	has := "it has none"
	if len(names) > 0 {
		has = "it has " + strings.Join(names, ", ")
	}
	return fmt.Errorf("the kubeconfig %s has no context %q: %s (`kubectl config get-contexts`)", target.Kubeconfig, target.Context, has)
}

// types finds the types of queries. Its errors say what to do.
func (c *cluster) types(queries []query) ([]resolve.Type, error) {
	mapper, err := c.flags.ToRESTMapper()
	if err != nil {
		return nil, c.target.Explain(err)
	}
	discovery, err := c.flags.ToDiscoveryClient()
	if err != nil {
		return nil, c.target.Explain(err)
	}
	resolver := resolve.New(mapper, discovery)
	var types []resolve.Type
	for _, q := range queries {
		found, err := resolver.Resolve(q.kind)
		if err != nil {
			return nil, c.target.Explain(err)
		}
		types = append(types, found)
	}
	return types, nil
}

// namespace returns the namespace that the flags or the context name, and whether a
// flag does.
func (c *cluster) namespace() (string, bool, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, c.target.Explain(err)
	}
	return namespace, *c.flags.Namespace != "", nil
}

// prepare sets what all requests have in common.
func prepare(config *rest.Config) {
	config.UserAgent = "tidings"
	config.WarningHandler = rest.NoWarnings{}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
}

// boundTransport ends its requests with a context that is not theirs.
type boundTransport struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip sends a request that ends with either context.
func (t *boundTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	return t.next.RoundTrip(req.WithContext(ctx)) //nolint:bodyclose // the caller closes it
}
