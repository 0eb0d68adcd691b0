package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"mime"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
)

const (
	// requestsPerSecond and requestBurst limit lists and watches.
	requestsPerSecond, requestBurst = 50, 100
	// discoveryPerSecond and discoveryBurst limit the requests of discovery. Clusters with many
	// custom types have hundreds of groups.
	discoveryPerSecond, discoveryBurst = 50, 300
	// discoveryAge is how long the answers of discovery are kept on the disk, as for kubectl.
	discoveryAge = 6 * time.Hour
	// dialTimeout bounds the time to connect.
	dialTimeout = 5 * time.Second
)

// cluster is the API server of a kubeconfig and flags.
type cluster struct {
	flags     serverFlags
	loader    clientcmd.ClientConfig
	config    *rest.Config
	discovery func() (discovery.CachedDiscoveryInterface, error) // the same client each time
	target    problem.Target
}

// open reads the kubeconfig. It sends no request. Requests of discovery, which accepts no context,
// end with ctx.
func open(ctx context.Context, flags serverFlags) (*cluster, error) {
	loader := flags.loader()
	c := &cluster{flags: flags, loader: loader, target: problem.Target{
		Context: flags.CurrentContext, Kubeconfig: loader.ConfigAccess().GetDefaultFilename(),
	}}
	if err := c.checkFiles(loader.ConfigAccess().GetLoadingPrecedence()); err != nil {
		return nil, err
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be read: %w: correct it, or name another "+
			"with --kubeconfig", err)
	}
	c.target.Context = cmp.Or(c.target.Context, raw.CurrentContext)
	if err := c.choose(raw); err != nil {
		return nil, err
	}
	if c.config, err = loader.ClientConfig(); err != nil {
		return nil, c.target.Explain(err)
	}
	server, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, c.target.Explain(err)
	}
	server.User = nil // the address may contain a password
	c.target.Server = server.String()
	c.target.Configured = len(raw.Clusters) > 0 || flags.ClusterInfo.Server != "" ||
		c.config.BearerTokenFile != ""
	c.config.QPS, c.config.Burst = requestsPerSecond, requestBurst
	prepare(c.config)
	c.discovery = sync.OnceValues(func() (discovery.CachedDiscoveryInterface, error) {
		return c.newDiscovery(ctx)
	})
	return c, nil
}

// unsafe matches characters that a file name may not have on some systems.
var unsafe = regexp.MustCompile(`[^\w/.()]`)

// newDiscovery returns a client of discovery that has the cache of kubectl.
func (c *cluster) newDiscovery(ctx context.Context) (discovery.CachedDiscoveryInterface, error) {
	config := rest.CopyConfig(c.config)
	config.QPS, config.Burst = discoveryPerSecond, discoveryBurst
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &boundTransport{ctx, next} })
	_, host, found := strings.Cut(config.Host, "://")
	if !found {
		host = config.Host
	}
	dir := cmp.Or(c.flags.cacheDir, defaultCacheDir())
	return disk.NewCachedDiscoveryClientForConfig(config,
		filepath.Join(dir, "discovery", unsafe.ReplaceAllString(host, "_")), filepath.Join(dir, "http"),
		discoveryAge)
}

// checkFiles returns an error if the file of --kubeconfig cannot be read, or if none of the files
// of KUBECONFIG exists. client-go would use its default address.
func (c *cluster) checkFiles(files []string) error {
	if explicit := c.flags.kubeconfig; explicit != "" {
		if _, err := os.Stat(explicit); err != nil {
			return fmt.Errorf("the kubeconfig cannot be read: %w: check --kubeconfig", err)
		}
	}
	const variable = clientcmd.RecommendedConfigPathEnvVar
	isThere := func(file string) bool {
		_, err := os.Stat(file)
		return !errors.Is(err, fs.ErrNotExist)
	}
	named := os.Getenv(variable)
	if named == "" || c.flags.ClusterInfo.Server != "" || slices.ContainsFunc(files, isThere) {
		return nil
	}
	return fmt.Errorf("the kubeconfig %s, which %s names, does not exist: correct %[2]s, unset it "+
		"to use %s, or name another file with --kubeconfig", named, variable,
		clientcmd.RecommendedHomeFile)
}

// choose finds the context, the cluster and the user. For a missing name, client-go would use its
// default address, or mention an "auth info".
func (c *cluster) choose(raw clientcmdapi.Config) error {
	named := new(clientcmdapi.Context)
	if name := c.target.Context; name != "" {
		if named = raw.Contexts[name]; named == nil {
			return fmt.Errorf("%s (`kubectl config get-contexts`)",
				missing(c.target, "context", name, "", raw.Contexts))
		}
	}
	cluster, naming := named.Cluster, fmt.Sprintf(", which the context %q names", c.target.Context)
	if given := c.flags.Context.Cluster; given != "" {
		cluster, naming = given, ""
	}
	if raw.Clusters[cluster] == nil && cluster != "" && c.flags.ClusterInfo.Server == "" {
		return fmt.Errorf("%s: choose one with --cluster, or give an address with --server",
			missing(c.target, "cluster", cluster, naming, raw.Clusters))
	}
	user := c.flags.Context.AuthInfo
	if raw.AuthInfos[user] == nil && user != "" {
		return fmt.Errorf("%s: choose one with --user",
			missing(c.target, "user", user, "", raw.AuthInfos))
	}
	c.target.User = cmp.Or(c.flags.AuthInfo.Impersonate, user, named.AuthInfo)
	return nil
}

// missing returns a text about a name that is not in the kubeconfig, with the names that are.
func missing[V any](target problem.Target, what, name, naming string, all map[string]V) string {
	has := cmp.Or(strings.Join(slices.Sorted(maps.Keys(all)), ", "), "none")
	return fmt.Sprintf("the kubeconfig %s has no %s %q%s: it has %s", target.Kubeconfig, what,
		name, naming, has)
}

func (c *cluster) namespace() (string, error) {
	namespace, _, err := c.loader.Namespace()
	return namespace, c.target.Explain(err)
}

// prepare sets the options of all requests.
func prepare(config *rest.Config) {
	config.UserAgent = "tidings"
	config.WarningHandler = rest.NoWarnings{}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
}

// boundTransport sends the requests of discovery. It cancels them with a second context, and
// refuses a web page as an answer.
type boundTransport struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip sends a request, which either context cancels. client-go handles the page of a proxy
// about a failure: it has the text for the status.
func (t *boundTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	response, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		return response, err
	}
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || media != "text/html" {
		return response, nil
	}
	response.Body.Close() //nolint:errcheck // the body is not read
	return nil, problem.NotKubernetesError("a web page")
}
