package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/internal/engine/served"
)

const (
	// defaultTimeout is the longest time for which kube-apiserver works on a write, even with a
	// longer timeout.
	defaultTimeout = 34 * time.Second
	// longestTimeout stands for longer ones. Sums of those overflow.
	longestTimeout = 365 * 24 * time.Hour
	// defaultQPS is kube-controller-manager's.
	defaultQPS = 20
	// maxShadowBody bounds the part of a body that is recorded.
	maxShadowBody = 64 << 10
)

// Options are the choices of a [Guard]. The zero value is ready.
type Options struct {
	// Timeout is the longest time for which the server may work on a write of a call; 0 is 34
	// seconds, the default of kube-apiserver. A shorter timeout or deadline of the caller takes
	// precedence, and so does the end of the term.
	Timeout time.Duration
	// QPS is the rate limit of each client of Direct, in requests per second. A burst may have
	// twice as many. 0 is 20, below 0 is no limit.
	QPS float32
	// RequirePreconditions refuses, under a term, an update without metadata.resourceVersion
	// and a delete without Preconditions.UID. A write that the server applies after the end of
	// its term then changes nothing that another program has written meanwhile.
	RequirePreconditions bool
	// Shadow is called with every write, and no write is sent. Several goroutines may call it at
	// once. Nil sends the writes.
	Shadow func(ShadowWrite)
}

// ShadowWrite is a write that was not sent.
type ShadowWrite struct {
	// Call is the name of the call, "" for a write without one.
	Call string
	// Verb is the verb of RBAC. Resource has the form deployments.apps/status.
	Verb, Resource string
	// Namespace and Name are those of the path; the name of a create is in its body.
	Namespace, Name string
	// ContentType is the encoding of the body, with the kind of a patch.
	ContentType string
	// Body has the first 64 KiB of the body at most. It is nil for a Secret.
	Body []byte
	// Truncated reports whether the body was longer.
	Truncated bool
}

// Guard watches over the writes of the clients that are made from its Config.
type Guard struct {
	o      Options
	config *rest.Config // as New received it
	base   *url.URL     // the address of the server; its path is the prefix of all paths
	server rest.Interface

	mu       sync.Mutex // guards terms and absences
	terms    []*Term    // those of writes without a call: SetDefaultTerm's first; a term may be nil
	absences map[schema.GroupVersionResource]served.Absence
	open     connections

	statsMu sync.Mutex // guards stats
	stats   Stats
}

// New returns a guard for the server that config names. It does not change config.
func New(config *rest.Config, o Options) (*Guard, error) {
	if config == nil {
		return nil, errors.New("guard: the rest.Config is nil: " +
			"load one with clientcmd or rest.InClusterConfig")
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("guard: Options.Timeout is %v: give a time above 0, or 0 for %v",
			o.Timeout, defaultTimeout)
	}
	if guardOf(config) != nil {
		return nil, errors.New("guard: the rest.Config is that of a guard: give the one from " +
			"which that guard was made")
	}
	o.Timeout = min(cmp.Or(o.Timeout, defaultTimeout), longestTimeout)
	o.QPS = cmp.Or(o.QPS, defaultQPS)
	g := &Guard{o: o, config: rest.CopyConfig(config), terms: []*Term{new(Term)},
		absences: map[schema.GroupVersionResource]served.Absence{}}
	var err error
	if g.base, err = serverOf(config); err != nil {
		return nil, err
	}
	if g.server, err = newServer(g.Direct()); err != nil {
		return nil, fmt.Errorf("guard: the rest.Config cannot be used: %w", err)
	}
	return g, nil
}

// serverOf returns the address that a config names, without a slash at its end.
func serverOf(config *rest.Config) (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		// The parser's error quotes the Host, which may contain a password.
		return nil, errors.New("guard: the rest.Config cannot be used: " +
			"its Host is no address: write it as in https://name:6443")
	}
	return &url.URL{
		Scheme: base.Scheme, Host: base.Host, Path: strings.TrimRight(base.Path, "/"),
	}, nil
}

// Config returns a configuration for clients whose writes pass the guard. The caller owns it, and
// may set QPS, user agent, content type and further wrappers, but not Host.
func (g *Guard) Config() *rest.Config {
	config := rest.CopyConfig(g.config)
	g.open.of(config)
	config.Wrap(g.Wrap)
	return config
}

// Wrap returns a transport whose writes pass the guard, for a program that already has an
// http.Client for the guard's server. The connections of that client stay open when a term
// closes.
func (g *Guard) Wrap(next http.RoundTripper) http.RoundTripper { return &transport{g, next} }

// Client returns an HTTP client for NewForConfigAndClient, which takes no transport from the
// rest.Config.
func (g *Guard) Client() (*http.Client, error) { return rest.HTTPClientFor(g.Config()) }

// Direct returns a configuration with the credentials of the guard's, but with connections and a
// rate limit of its own for each client, and without a timeout. Its requests do not pass the
// guard: it is for leases, which must be renewed also when the guard sends nothing.
func (g *Guard) Direct() *rest.Config {
	config := rest.CopyConfig(g.config)
	new(connections).of(config)
	config.Timeout, config.RateLimiter = 0, nil
	config.QPS, config.Burst = g.o.QPS, max(int(2*g.o.QPS), 1)
	return config
}

// Host returns the address of the server: scheme, name, port and path.
func (g *Guard) Host() string { return g.base.String() }

// SetDefaultTerm sets the term of writes that carry no call's context, except events. Nil, the
// initial value, sends them at all times.
func (g *Guard) SetDefaultTerm(term Term) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*g.terms[0] = term
}

// AddDefaultTerm adds a term of writes that carry no call's context, and returns the function that
// replaces it: each of several elections of a process has one. The writes are sent while one of the
// terms is open.
func (g *Guard) AddDefaultTerm(term Term) (replace func(Term)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	own := &term
	g.terms = append(g.terms, own)
	return func(term Term) {
		g.mu.Lock()
		defer g.mu.Unlock()
		*own = term
	}
}

// termKey is the key of a guard's terms in contexts.
type termKey struct{ *Guard }

// InTerm returns a context with a term of its own for writes that carry no call's context, in place
// of the default terms. Nil sends them at all times.
func (g *Guard) InTerm(ctx context.Context, term Term) context.Context {
	return context.WithValue(ctx, termKey{g}, &term)
}

// defaultTerm returns the default term that stays open longest, a closed one if all are, nil
// without any.
func (g *Guard) defaultTerm() (longest Term) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.terms {
		if *t != nil && (longest == nil || remaining(*t) > remaining(longest)) {
			longest = *t
		}
	}
	return longest
}

// remaining returns the time for which a term stays open, 0 for a closed one.
func remaining(t Term) time.Duration {
	if t.Err() != nil {
		return 0
	}
	return max(t.Remaining(), 0)
}

// isServer reports whether a URL is one of the guard's server's.
func (g *Guard) isServer(u *url.URL) bool {
	return u.Host == g.base.Host && u.Scheme == g.base.Scheme
}

// probeKey is the context key of a request that only finds the guard that it passes.
type probeKey struct{}

// probe is the value of probeKey.
type probe struct{ guard *Guard }

var errProbed = errors.New("this request only asks for the guard")

// passes returns the guard through which a transport sends, or nil. Nothing is sent,
// as the context has ended.
func passes(rt http.RoundTripper) *Guard {
	p := &probe{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), probeKey{}, p))
	cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://guard.invalid/", nil)
	if err != nil || rt == nil {
		return nil
	}
	if resp, err := rt.RoundTrip(req); err == nil {
		resp.Body.Close() //nolint:errcheck // the answer is not used
	}
	return p.guard
}

// guardOf returns the guard of a config, or nil.
func guardOf(config *rest.Config) *Guard {
	if config.WrapTransport == nil {
		return nil
	}
	return passes(config.WrapTransport(refusing{}))
}

// refusing is a transport that sends nothing.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errProbed }

// Check returns an error if clients that are made from config do not write through the guard,
// because config is for another server, or was not made by Config. A client that is made from
// config with NewForConfigAndClient sends through its http.Client: see CheckClient.
func (g *Guard) Check(config *rest.Config) error {
	if config == nil {
		return fmt.Errorf("guard: the rest.Config is nil: %w", ErrUnguarded)
	}
	server, err := serverOf(config)
	if err != nil {
		return err
	}
	if *server != *g.base {
		return fmt.Errorf("guard: the rest.Config is for %s, and the guard for %s: %w",
			server, g.base, ErrOtherServer)
	}
	if guardOf(config) != g {
		return fmt.Errorf("guard: a rest.Config for %s: %w", g.base, ErrUnguarded)
	}
	return nil
}

// CheckClient returns an error if an HTTP client does not write through the guard.
func (g *Guard) CheckClient(client *http.Client) error {
	if client == nil || passes(client.Transport) != g {
		return fmt.Errorf("guard: an http.Client for %s: %w", g.base, ErrUnguarded)
	}
	return nil
}
