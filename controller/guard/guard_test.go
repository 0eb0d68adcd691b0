package guard

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	g, err := New(&rest.Config{Host: "https://a:6443"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config *rest.Config
		o      Options
		says   string
	}{
		{nil, Options{}, "the rest.Config is nil"},
		{&rest.Config{Host: "https://user:secret@a:b:c"}, Options{}, "Host is no address"},
		{&rest.Config{Host: "https://a"}, Options{Timeout: -1}, "Options.Timeout is -1ns"},
		{&rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "/missing"}}, Options{}, "/missing"},
		{g.Config(), Options{}, "is that of a guard"},
	} {
		_, err := New(c.config, c.o)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("the error is %v, want %q", err, c.says)
		}
	}
}

// TestCheckFindsWhatBypasses checks clients that do not write through the guard.
func TestCheckFindsWhatBypasses(t *testing.T) {
	config := &rest.Config{Host: "https://a:6443/prefix/"}
	g, err := New(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if g.Host() != "https://a:6443/prefix" || config.WrapTransport != nil || config.Dial != nil {
		t.Errorf("the host is %s, the config %v", g.Host(), config)
	}
	other, err := New(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	moved := g.Config()
	moved.Host = "https://b:6443"
	replaced := g.Config()
	replaced.WrapTransport = nil
	wrapped := g.Config()
	wrapped.Wrap(func(rt http.RoundTripper) http.RoundTripper { return opaque(rt) })
	for name, c := range map[string]struct {
		config *rest.Config
		err    error
	}{
		"its own": {g.Config(), nil}, "a wrapped one": {wrapped, nil},
		"with another transport": {withTransport(g.Config()), nil},
		"the given one":          {config, ErrUnguarded}, "none": {nil, ErrUnguarded},
		"without its wrapper": {replaced, ErrUnguarded}, "another guard's": {other.Config(), ErrUnguarded},
		"another server's": {moved, ErrOtherServer}, "the direct one": {g.Direct(), ErrUnguarded},
	} {
		if err := g.Check(c.config); !errors.Is(err, c.err) {
			t.Errorf("%s: the error is %v, want %v", name, err, c.err)
		}
	}
	client, err := g.Client()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.CheckClient(client); err != nil {
		t.Errorf("its own client: %v", err)
	}
	for _, client := range []*http.Client{nil, {}, {Transport: opaque(http.DefaultTransport)}} {
		err := g.CheckClient(client)
		if !errors.Is(err, ErrUnguarded) || !strings.Contains(err.Error(), "guard.Client()") {
			t.Errorf("the error is %v", err)
		}
	}
}

// opaque returns a transport that does not show the one below.
func opaque(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) { return next.RoundTrip(req) })
}

func withTransport(config *rest.Config) *rest.Config {
	config.Dial, config.Transport = nil, &http.Transport{}
	return config
}

// TestAnotherServerIsRefused writes with a config whose host was changed.
func TestAnotherServerIsRefused(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		config := r.guard.Config()
		config.Host = "http://other.invalid"
		client, err := kubernetes.NewForConfig(config)
		r.must(err)
		maps := client.CoreV1().ConfigMaps("default")
		_, err = maps.Create(r.Context(), configMap("a"), metav1.CreateOptions{})
		r.isError(err, ErrOtherServer, "post other.invalid/api/v1/namespaces/default/configmaps")
	})
}

// TestNewForConfigAndClient makes a client with NewForConfigAndClient.
func TestNewForConfigAndClient(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		http, err := r.guard.Client()
		r.must(err)
		client, err := kubernetes.NewForConfigAndClient(r.guard.Config(), http)
		r.must(err)
		ctx, call := r.guard.Begin(r.Context(), nil)
		maps := client.CoreV1().ConfigMaps("default")
		made, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{})
		r.must(err)
		if w := r.only(call); w.Version != made.ResourceVersion {
			r.Errorf("it is noted as %+v", w)
		}
	})
}

// TestShadow records writes. None of them is sent.
func TestShadow(t *testing.T) {
	var writes []ShadowWrite
	o := Options{Shadow: func(w ShadowWrite) { writes = append(writes, w) }}
	inBubble(t, o, func(r *rig) {
		r.speak(runtime.ContentTypeJSON)
		create(r, configMap("a"))
		ctx, call := r.guard.Begin(r.Context(), nil)
		call.Name = "rollout default/a"
		large := configMap("b")
		large.Data = map[string]string{"key": strings.Repeat("x", 100<<10)}
		_, err := r.maps().Create(ctx, large, metav1.CreateOptions{})
		r.isError(err, ErrShadow, "create configmaps default", "not sent")
		patch := []byte(`{"data":{"a":"b"}}`)
		_, err = r.maps().Patch(r.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{})
		r.isError(err, ErrShadow, "patch configmaps default/a")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
		secret.StringData = map[string]string{"password": "p"}
		_, err = r.typed.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{})
		r.isError(err, ErrShadow, "create secrets default")
		_, err = r.maps().Get(ctx, "a", metav1.GetOptions{})
		r.must(err)
		if len(writes) != 3 || len(call.End()) > 0 {
			r.Fatalf("recorded: %+v", writes)
		}
		first, second, third := writes[0], writes[1], writes[2]
		if first.Call != call.Name || !first.Truncated || len(first.Body) != maxShadowBody ||
			!strings.Contains(string(first.Body), `"name":"b"`) {
			first.Body = first.Body[:min(200, len(first.Body))]
			r.Errorf("the first is %+v, its body %s", first, first.Body)
		}
		if second.Call != "" || second.Verb != "patch" || second.Resource != "configmaps" ||
			second.Namespace != "default" || second.Name != "a" || string(second.Body) != string(patch) ||
			second.ContentType != string(types.MergePatchType) || second.Truncated {
			r.Errorf("the second is %+v", second)
		}
		if third.Body != nil {
			r.Errorf("the body of a secret is recorded")
		}
		if got, want := r.guard.Stats(), (Stats{Shadowed: 3}); got != want {
			r.Errorf("the counts are %+v, want %+v", got, want)
		}
		r.server.ExpectRequests(r, apisim.Match{Verb: "create"}, 0)
	})
}

// TestDirect sends requests that do not pass the guard, under the rate limit of Options.QPS.
func TestDirect(t *testing.T) {
	inBubble(t, Options{QPS: 2}, func(r *rig) {
		direct := r.guard.Direct()
		client, err := kubernetes.NewForConfig(direct)
		r.must(err)
		r.guard.SetDefaultTerm(newTerm(0))
		maps, began := client.CoreV1().ConfigMaps("default"), time.Now()
		for range 6 { // four at once, the others in half a second each
			_, err := maps.Create(r.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}},
				metav1.CreateOptions{})
			r.must(err)
		}
		if took := time.Since(began).Round(time.Millisecond); took != time.Second {
			r.Errorf("six requests took %v", took)
		}
		if got := r.guard.Stats(); got != (Stats{}) {
			r.Errorf("the counts are %+v", got)
		}
		given := r.server.Config().Transport
		if direct.Transport == given || r.guard.Config().Transport == given ||
			r.guard.Config().Transport == r.guard.Direct().Transport {
			r.Error("connections are shared")
		}
	})
}
