package ctrlruntime_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/ctrlruntime"
	"github.com/tidings-go/tidings/internal/test/logtable"
)

// newInformerFunc is the option NewInformer.
type newInformerFunc = func(toolscache.ListerWatcher, runtime.Object, time.Duration,
	toolscache.Indexers) toolscache.SharedIndexInformer

// combination is a way in which a program combines the parts of this module and its own options.
type combination struct {
	ownCache, ownClient bool // controller-runtime's, in place of NewCache and NewClient
	newInformer         newInformerFunc
	makes               string // what newInformer makes
	timeout             time.Duration
	namespaces          map[string]cache.Config
}

// combinations yields all of them.
func combinations(yield func(string, combination) bool) {
	for n := range 2 * 2 * 3 * 2 * 2 {
		c := combination{ownCache: n%2 > 0, ownClient: n/2%2 > 0}
		switch n / 4 % 3 {
		case 1:
			c.newInformer, c.makes = toolscache.NewSharedIndexInformer, "client-go's"
		case 2:
			c.newInformer, c.makes = tidingscache.NewSharedIndexInformer, "a drop-in"
		}
		if n/12%2 > 0 {
			c.timeout = 10 * time.Second
		}
		if n/24 > 0 {
			c.namespaces = map[string]cache.Config{"shop": {}, "blog": {}}
		}
		name := fmt.Sprintf("own cache %v, own client %v, NewInformer %q, timeout %v, %d namespaces",
			c.ownCache, c.ownClient, c.makes, c.timeout, len(c.namespaces))
		if !yield(name, c) {
			return
		}
	}
}

// TestC03_Combinations: reads wait, or a line and the health say why not. The module's own source
// reads, or they say that too.
func TestC03_Combinations(t *testing.T) {
	for name, c := range combinations {
		t.Run(name, func(t *testing.T) { synctest.Test(t, c.test) })
	}
}

func (c combination) test(t *testing.T) {
	w := &clientWorld{world: newWorld(t, cache.Options{DefaultNamespaces: c.namespaces, NewInformer: c.newInformer})}
	w.config.Timeout = c.timeout
	w.server.RefuseStreamedLists(true)
	w.server.Inject(lateWatches, apisim.Stall(apisim.EachFrame, late))
	lines := logged.Load()
	if lines == nil {
		lines = logtable.New("")
		logged.Store(lines)
		defer logged.Store(nil)
	}
	newCache, newClient := ctrlruntime.NewCache, client.NewClientFunc(ctrlruntime.NewClient)
	if c.ownCache {
		newCache = cache.New
	}
	if c.ownClient {
		newClient = client.New
	}
	w.make(newCache)
	w.start()
	made, err := newClient(w.config, client.Options{Scheme: w.options.Scheme, Mapper: w.mapper(),
		Cache: &client.CacheOptions{Reader: w.cache}})
	if isWrong := c.ownCache && !c.ownClient; isWrong != (err != nil) {
		t.Errorf("the error of NewClient is %v", err)
	}
	if err != nil {
		return
	}
	w.client = made
	m := configMap("shop", "x", nil)
	w.absent(m)
	w.must(w.client.Create(t.Context(), m))
	read := m.DeepCopy()
	err = w.client.Get(t.Context(), client.ObjectKeyFromObject(m), read)
	isAwaited := !c.ownCache && !c.ownClient && c.makes != "client-go's"
	if isAwaited != (err == nil) {
		t.Errorf("the read after the write has the error %v; does it wait: %v", err, isAwaited)
	}
	time.Sleep(4 * time.Minute)
	w.server.ForgetRequests()
	time.Sleep(4 * time.Minute)
	w.reads(m, false, 0, 0)

	set := ctrlruntime.Informers(w.cache)
	if (set == nil) != c.ownCache {
		t.Fatalf("the set of informers is %v", set)
	}
	warned := 0
	for line, n := range lines.Kinds() {
		if strings.Contains(line, "an informer does less") {
			warned += n
		}
	}
	if fallsBack := !c.ownCache && c.newInformer != nil; fallsBack != (warned > 0) {
		t.Errorf("%d lines tell of %d informers: %v", warned, len(set.Health()), lines.Kinds())
	}
	for _, h := range set.Health() {
		tellsOfReads := strings.Contains(h.Fallback, "do not wait for writes")
		if (h.Fallback != "") != (c.newInformer != nil) || tellsOfReads != (c.makes == "client-go's") {
			t.Errorf("%s falls back: %q", h.Name, h.Fallback)
		}
		if c.newInformer == nil && h.Bytes == 0 {
			t.Errorf("%s is not read by the source of this module", h.Name)
		}
		if !h.Synced || h.Version == "" || !strings.HasPrefix(h.Name, "configmaps.v1") && !strings.Contains(h.Name, "ConfigMap") {
			t.Errorf("the health is %+v", h)
		}
	}
	if n := len(w.server.Requests().Of(apisim.Match{Resource: "configmaps"})); set != nil && c.newInformer == nil && n > 2*len(set.Health()) {
		t.Errorf("%d requests in 4 minutes", n)
	}
	if err := set.WaitFor(t.Context(), m); (err == nil) != (set != nil && c.makes != "client-go's") {
		t.Errorf("WaitFor: %v", err)
	}
}

// tokens counts the tokens of a rate limit.
type tokens struct {
	flowcontrol.RateLimiter
	taken atomic.Int32
}

func (l *tokens) Wait(context.Context) error { l.taken.Add(1); return nil }
func (l *tokens) TryAccept() bool            { l.taken.Add(1); return true }

// TestP18_InformersTakeNoTokens: an informer is made with the cache locked, and takes no token of
// the limit that all clients of the program share, nor waits for one of its own.
func TestP18_InformersTakeNoTokens(t *testing.T) {
	all := []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Pod{}, &corev1.Namespace{}, &Widget{}, &AllowList{}}
	for name, newInformer := range map[string]newInformerFunc{"its own": nil, "of client-go": toolscache.NewSharedIndexInformer} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, cache.Options{NewInformer: newInformer})
				w.options.Mapper = w.mapper()
				w.server.RefuseStreamedLists(true) // a watch takes no token
				shared := &tokens{RateLimiter: flowcontrol.NewFakeAlwaysRateLimiter()}
				w.config.RateLimiter = shared
				w.make(ctrlruntime.NewCache)
				made := func() {
					for _, o := range all {
						_, err := w.cache.GetInformer(t.Context(), o, cache.BlockUntilSynced(false))
						w.must(err)
					}
				}
				if d := took(made); d > 0 || shared.taken.Load() > 0 {
					t.Errorf("%d informers have taken %v and %d tokens", len(all), d, shared.taken.Load())
				}
				w.start()
				w.found(&corev1.ConfigMapList{})
				if shared.taken.Load() == 0 {
					t.Error("their lists have taken no token")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, cache.Options{NewInformer: toolscache.NewSharedIndexInformer})
		w.options.Mapper = w.mapper()
		w.server.RefuseStreamedLists(true) // a watch takes no token
		w.config.QPS, w.config.Burst = 0.001, 1
		w.make(ctrlruntime.NewCache)
		w.start()
		if d := took(func() { w.found(&corev1.ConfigMapList{}) }); d > time.Second {
			t.Errorf("the first list has waited %v for the limit of its client", d)
		}
	})
}

// removing is a selector that removes an informer while it is read.
type removing struct {
	labels.Selector
	remove func()
}

func (s removing) Matches(labels.Labels) bool { s.remove(); return true }

// TestLogs logs each line of docs/logs.md, and no other.
func TestLogs(t *testing.T) {
	lines := logtable.New("")
	logged.Store(lines)
	defer logged.Store(nil)
	synctest.Test(t, combination{newInformer: toolscache.NewSharedIndexInformer, makes: "client-go's"}.test)
	withClient(t, cache.Options{}, 0, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		w.must(w.client.Create(w.Context(), m))
		w.server.Inject(apisim.Match{Verb: "update", Times: 1}, apisim.Refuse(500, 0))
		_ = w.client.Update(w.Context(), m) // its outcome is not known
		remove := func() { _ = w.cache.RemoveInformer(w.Context(), m) }
		for range 2 {
			w.lists(&corev1.ConfigMapList{}, client.MatchingLabelsSelector{Selector: removing{labels.Everything(), remove}})
		}
	})
	if err := lines.Compare("../docs/logs.md", "controller-runtime"); err != nil {
		t.Error(err)
	}
}
