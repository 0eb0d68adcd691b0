package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/e2e/internal/proxy"
)

// instances are several API servers before one etcd, behind a load balancer. The server that has
// the etcd is not behind it: it is for writers, and is never disturbed.
type instances struct {
	*testing.T
	storage  *apiserver.Server
	all      []*apiserver.Server
	slow     []*proxy.Proxy // before each of them
	balancer *proxy.Proxy
}

func startInstances(t *testing.T, n int) *instances {
	t.Helper()
	f := &instances{T: t, storage: startServer(t)}
	var urls []string
	for range n {
		i, err := f.storage.AddInstance(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slow := balance(t, i.URL())
		f.all, f.slow, urls = append(f.all, i), append(f.slow, slow), append(urls, slow.URL())
	}
	f.balancer = balance(t, urls...)
	return f
}

// config returns the configuration of a client behind the balancer. With HTTP/1.1 each watch is a
// connection of its own; otherwise all requests share one.
func (f *instances) config(separate bool) *rest.Config {
	c := f.storage.Config()
	c.Host = f.balancer.URL()
	if separate {
		c.NextProtos = []string{"http/1.1"}
	}
	return c
}

func (f *instances) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// disturb stops, kills or delays one of the servers for a while, or breaks its connections.
func (f *instances) disturb(random *rand.Rand) {
	f.Helper()
	n := random.IntN(len(f.all))
	i := f.all[n]
	switch random.IntN(4) {
	case 0:
		f.must(i.Signal(syscall.SIGSTOP))
		pause(f.Context(), 3*time.Second)
		f.must(i.Signal(syscall.SIGCONT))
	case 1:
		f.must(i.Kill())
		pause(f.Context(), time.Second)
		f.must(i.Restart(f.Context()))
	case 2:
		f.slow[n].Delay(200 * time.Millisecond)
		pause(f.Context(), 2*time.Second)
		f.slow[n].Delay(0)
	default:
		f.slow[n].Cut()
	}
	pause(f.Context(), 500*time.Millisecond)
}

// TestP02_SeveralServers disturbs one of three servers after the other while informers of every
// kind follow them. In the end one stands still, and informers whose connections are to it find the
// others (P15).
func TestP02_SeveralServers(t *testing.T) {
	t.Parallel()
	f := startInstances(t, 3)
	all := slices.Concat(followConfigMaps(t, f.config(false)),
		followBriefly(t, f.config(true), time.Second))
	churn := startChurn(t, f.storage.Config(), rate, *seed)
	random := rand.New(rand.NewPCG(*seed, 2))
	for range 8 {
		f.disturb(random)
	}
	f.must(f.all[0].Signal(syscall.SIGSTOP))
	pause(t.Context(), time.Second)
	churn.end(t)
	settle(t, f.storage, all)
	f.must(f.all[0].Signal(syscall.SIGCONT))
}

// TestP14_SeveralServers waits for versions of writes to one server while informers follow another
// one, which is disturbed.
func TestP14_SeveralServers(t *testing.T) {
	t.Parallel()
	f := startInstances(t, 2)
	client, err := kubernetes.NewForConfig(f.storage.Config())
	f.must(err)
	var all []*tidings.Informer[*corev1.ConfigMap]
	for n := range 4 {
		factory, err := tidings.NewFactory(f.config(n > 0), tidings.FactoryOptions{
			Namespaces: [][]string{nil, {"a"}}[n%2],
			Transport:  tidings.Transport{WatchTimeout: 5 * time.Second, NoStreamedLists: n > 1},
		})
		f.must(err)
		i, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		f.must(err)
		f.must(factory.Start(t.Context()))
		t.Cleanup(func() {
			factory.Shutdown(context.Background()) //nolint:errcheck // it has no handlers
		})
		all = append(all, i)
	}
	maps := client.CoreV1().ConfigMaps("a")
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "map"}}
	_, err = maps.Create(t.Context(), obj, metav1.CreateOptions{})
	f.must(err)
	random := rand.New(rand.NewPCG(*seed, 3))
	var longest time.Duration
	for n := range 6 {
		var waits sync.WaitGroup
		waits.Go(func() {
			pause(t.Context(), 300*time.Millisecond)
			obj.Data = map[string]string{"n": strconv.Itoa(n)}
			made, err := maps.Update(t.Context(), obj, metav1.UpdateOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			longest = max(longest, awaitWrite(t, all, made))
		})
		f.disturb(random)
		waits.Wait()
	}
	t.Logf("the longest wait took %v", longest.Round(time.Millisecond))
}

// awaitWrite waits until informers have reached the version of a write, and returns how long that
// took.
func awaitWrite(
	t *testing.T, all []*tidings.Informer[*corev1.ConfigMap], made *corev1.ConfigMap,
) time.Duration {
	began := time.Now()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for k, i := range all {
		if err := i.WaitFor(ctx, made.ResourceVersion); err != nil {
			t.Errorf("informer %d: %v; health %+v", k, err, i.Health())
		}
		got, err := i.Lister().Namespace(made.Namespace).Get(made.Name)
		if err != nil || got.ResourceVersion != made.ResourceVersion {
			t.Errorf("informer %d has reached %s and holds %v, %v", k, made.ResourceVersion, got, err)
		}
	}
	return time.Since(began)
}

// TestP16_SeveralServers restores a backup, and writes to the new history until it has passed the
// version that informers have reached, before they reach a server again.
func TestP16_SeveralServers(t *testing.T) {
	t.Parallel()
	f := startInstances(t, 2)
	all := slices.Concat(followBriefly(t, f.config(false), 5*time.Second),
		followBriefly(t, f.config(true), 5*time.Second))
	restore := diverge(t, f.storage, startChurn(t, f.storage.Config(), rate, *seed), all)
	reached, err := configMaps(t.Context(), f.storage)
	f.must(err)
	for _, i := range f.all {
		f.must(i.Kill())
	}
	f.must(restore(t.Context()))
	newest := int64(0)
	for key := range maps.Keys(reached) {
		version, err := strconv.ParseInt(reached.Version(key), 10, 64)
		f.must(err)
		newest = max(newest, version)
	}
	f.pass(newest)
	for _, i := range f.all {
		f.must(i.Restart(t.Context()))
	}
	settle(t, f.storage, all)
	goOn(t, f.storage, all)
}

// pass writes one object until its version is beyond another one.
func (f *instances) pass(version int64) {
	f.Helper()
	client, err := kubernetes.NewForConfig(f.storage.Config())
	f.must(err)
	maps := client.CoreV1().ConfigMaps("default")
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "passes"}}
	_, err = maps.Create(f.Context(), obj, metav1.CreateOptions{})
	f.must(err)
	for n := 0; ; n++ {
		obj.Data = map[string]string{"n": strconv.Itoa(n)}
		made, err := maps.Update(f.Context(), obj, metav1.UpdateOptions{})
		f.must(err)
		at, err := strconv.ParseInt(made.ResourceVersion, 10, 64)
		f.must(err)
		if at > version {
			f.Logf("the new history has passed version %d after %d writes", version, n)
			return
		}
	}
}

// marker is a controller that writes the data of a config map into an annotation, and checks that
// no call sees an object from before its own last write.
type marker struct {
	*testing.T
	client kubernetes.Interface

	mu    sync.Mutex // guards the rest
	wrote map[string]int64
	calls int
}

func (m *marker) call(
	ctx context.Context, r controller.Request[*corev1.ConfigMap],
) (controller.Result, error) {
	if r.Gone {
		return controller.Result{}, nil
	}
	id := r.Key + " " + string(r.Object.UID)
	cached, err := strconv.ParseInt(r.Object.ResourceVersion, 10, 64)
	if err != nil {
		return controller.Result{}, err
	}
	m.mu.Lock()
	m.calls++
	if wrote := m.wrote[id]; cached < wrote {
		m.Errorf("a call of %s sees version %d after a write of %d", id, cached, wrote)
	}
	m.mu.Unlock()
	if r.Object.Annotations["marked"] == r.Object.Data["n"] {
		return controller.Result{}, nil
	}
	next := r.Object.DeepCopy()
	next.Annotations = map[string]string{"marked": next.Data["n"]}
	made, err := m.client.CoreV1().ConfigMaps(next.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return controller.Result{}, err
	}
	version, err := strconv.ParseInt(made.ResourceVersion, 10, 64)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrote[id] = version
	return controller.Result{}, err
}

// TestC03_SeveralServers runs a controller whose informer and whose writes reach three servers, one
// of which is disturbed at a time, under the writes of others.
func TestC03_SeveralServers(t *testing.T) {
	t.Parallel()
	f := startInstances(t, 3)
	config := f.config(true)
	config.Timeout = 5 * time.Second // of writes to a server that stands still
	guard, err := controller.NewGuard(config, controller.GuardOptions{QPS: -1})
	f.must(err)
	client, err := kubernetes.NewForConfig(guard.Config())
	f.must(err)
	factory, err := tidings.NewFactory(f.config(true), tidings.FactoryOptions{
		Transport: tidings.Transport{WatchTimeout: 5 * time.Second},
	})
	f.must(err)
	informer, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Namespaces: namespaces})
	f.must(err)
	m := &marker{T: t, client: client, wrote: map[string]int64{}}
	c, err := controller.New(informer, controller.Options[*corev1.ConfigMap]{
		Name: "marker", Workers: 4, Guard: guard,
	}, m.call)
	f.must(err)
	f.must(factory.Start(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	churn := startChurn(t, f.storage.Config(), rate/10, *seed)
	random := rand.New(rand.NewPCG(*seed, 4))
	for range 8 {
		f.disturb(random)
	}
	churn.end(t)
	err = eventually(t.Context(), patience, func(ctx context.Context) (bool, error) {
		list, err := churn.client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, cm := range list.Items {
			if slices.Contains(namespaces, cm.Namespace) && cm.Annotations["marked"] != cm.Data["n"] {
				return false, fmt.Errorf("%s/%s is not marked; health %+v", cm.Namespace, cm.Name, c.Health())
			}
		}
		return true, nil
	})
	stop()
	f.must(<-ended)
	f.must(err)
	f.must(factory.Shutdown(context.Background()))
	t.Logf("%d calls, %d objects written", m.calls, len(m.wrote))
}
